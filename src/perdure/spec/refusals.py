"""What the language has and this version does not do yet: refused when a run is submitted, one sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from pydantic import BaseModel

from perdure.model.errors import FieldError
from perdure.spec.grammar.mounts import NetworkMount
from perdure.spec.models.fleet import FleetConfiguration
from perdure.spec.models.run import RunFields, Task
from perdure.spec.rules import field_errors
from perdure.spec.rules.base import Problem

Refusal: TypeAlias = tuple[str, str, str | None]
"""Path, message, hint."""

_NO_IMAGE = "leave it out, and set an image that has what the commands need"


def not_yet(configuration: BaseModel, project: str | None = None) -> list[FieldError]:
    """What is right in a configuration of any kind, and cannot be honoured by this version; ``project``: whose it
    would be, if that is known."""
    if isinstance(configuration, FleetConfiguration):
        return field_errors(Problem(*refusal) for refusal in fleet_refusals(configuration))
    if isinstance(configuration, RunFields):
        return field_errors(Problem(*refusal) for refusal in refusals(configuration, project))
    kind = getattr(configuration, "type", "")
    return field_errors([Problem("type", f"a {kind} is not supported yet: this version has runs and fleets")])


def refusals(run: RunFields, project: str | None = None) -> Iterator[Refusal]:
    """(path, message, hint) of every field that could not be honoured; ``project``: whose run it would be, if
    that is known."""
    if isinstance(run, Task):
        yield from _of_task(run, project)
    else:
        kind = getattr(run, "type", "run")
        yield "type", f"a {kind} is not supported yet: this version runs tasks", None


def _of_task(run: Task, project: str | None) -> Iterator[Refusal]:
    if run.groups is not None:
        yield "groups", "node groups are not supported yet", "use nodes, and branch on $DSTACK_NODE_RANK"
    if run.docker:
        yield "docker", "docker: true is not supported yet", "set an image, with privileged: true if it must be"
    if run.python is not None:
        yield "python", "python is not supported yet: it needs the default image", _NO_IMAGE
    if run.nvcc:
        yield "nvcc", "nvcc is not supported yet: it needs the default image", _NO_IMAGE
    if run.dstack:
        yield "dstack", "nothing inside a run reaches the control plane, so it cannot be given the server", None
    for index, mount in enumerate(run.volumes):
        if isinstance(mount, NetworkMount):
            yield f"volumes[{index}]", "network volumes are not supported yet", "mount a host folder: /host:/path"
    for index, repo in enumerate(run.repos):
        if repo.url is not None:
            yield f"repos[{index}]", "a repository by URL is not supported yet", "clone it, and give its local path"
        elif repo.branch is not None or repo.hash is not None:
            yield f"repos[{index}]", "branch and hash are not supported yet", "check it out in the local folder"
    yield from _profile(run, project)


def _profile(run: Task, project: str | None) -> Iterator[Refusal]:
    for field, words in (
        ("schedule", "schedules are not supported yet"),
        ("utilization_policy", "utilization_policy is not supported yet"),
        ("reservation", "reservations are not supported yet"),
        ("availability_zones", "availability_zones are not supported yet"),
        ("instances", "choosing existing instances is not supported yet"),
        ("backend_options", "backend_options are not supported yet"),
    ):
        if getattr(run, field):
            yield field, words, "fleets chooses among fleets" if field == "instances" else None
    for index, fleet in enumerate(run.fleets or ()):
        if project is not None and fleet.project not in (None, project):
            yield f"fleets[{index}]", "fleets of another project are not supported yet", None


_CLOUD_ONLY = (
    "nodes",
    "reservation",
    "resources",
    "backends",
    "regions",
    "availability_zones",
    "instance_types",
    "spot_policy",
    "retry",
    "max_price",
    "idle_duration",
    "tags",
    "backend_options",
)


def fleet_refusals(fleet: FleetConfiguration) -> Iterator[Refusal]:
    """As ``refusals``, of a fleet; with the rules that need more than one field."""
    if fleet.ssh_config is not None:
        for field in _CLOUD_ONLY:
            if field in fleet.model_fields_set:
                yield field, "is not a field of a fleet with ssh_config", None
        yield "ssh_config", "fleets of SSH hosts come later", None
        return
    if fleet.nodes is None:
        yield "nodes", "is missing", "say how many instances: nodes: 0..4"
    if fleet.env:
        yield "env", "is not a field of a fleet without ssh_config", None
    for field in ("reservation", "availability_zones", "backend_options", "retry"):
        if getattr(fleet, field):
            yield field, f"{field} of a fleet is not supported yet", None


def warnings(run: RunFields) -> tuple[str, ...]:
    """What is read and has no effect, or not yet all of it."""
    idle = [field for field in ("home_dir", "setup", "single_branch") if field in run.model_fields_set]
    return tuple(f"{field} has no effect" for field in idle) + tuple(_not_forwarded(run))


def _not_forwarded(run: RunFields) -> Iterator[str]:
    for port in run.ports if isinstance(run, Task) else ():
        if port.local_port not in (None, port.container_port):
            yield (
                f"the local port {port.local_port} is not forwarded yet: port {port.container_port} of the job is"
                f" served at http://ADDRESS:{port.container_port}, where ADDRESS is its instance's"
            )
