"""What the language has and this version does not do yet: right as it is written, and refused when it is submitted,
one sentence each."""

from __future__ import annotations

from pydantic import BaseModel

from perdure.model.errors import FieldError
from perdure.spec.grammar.mounts import NetworkMount
from perdure.spec.grammar.retry import RetrySpec
from perdure.spec.models.fleet import FleetConfiguration
from perdure.spec.models.profile import ProfileFields
from perdure.spec.models.run import RunFields, Task
from perdure.spec.rules.base import Problem, Problems, field_errors

_NO_IMAGE = "leave it out, and set an image that has what the commands need"


def not_yet(configuration: BaseModel, project: str | None = None) -> list[FieldError]:
    """What is right in a configuration of any kind, and cannot be honoured by this version.

    Args:
        project: whose it would be, if that is known.
    """
    return field_errors(_of_any(configuration, project))


def _of_any(configuration: BaseModel, project: str | None) -> Problems:
    match configuration:
        case Task():
            yield from _of_task(configuration, project)
        case FleetConfiguration():
            yield from _of_fleet(configuration)
        case _:
            kind = getattr(configuration, "type", "configuration")
            hint = "run it as a task meanwhile" if isinstance(configuration, RunFields) else None
            yield Problem("type", f"is {kind}, which is not supported yet: this version has tasks and fleets", hint)


def _of_task(task: Task, project: str | None) -> Problems:
    if task.groups is not None:
        yield Problem("groups", "are not supported yet", "use nodes, and branch on $DSTACK_NODE_RANK")
    if task.docker:
        hint = "set an image, with privileged: true if it must be"
        yield Problem("docker", "is not supported yet", hint)
    if task.python is not None:
        yield Problem("python", "is not supported yet: it needs the default image", _NO_IMAGE)
    if task.nvcc:
        yield Problem("nvcc", "is not supported yet: it needs the default image", _NO_IMAGE)
    if task.dstack:
        message = "cannot be true: nothing inside a run reaches the control plane"
        yield Problem("dstack", message, "call perdure from outside of the run")
    for index, mount in enumerate(task.volumes):
        if isinstance(mount, NetworkMount):
            message = "is a network volume, and these are not supported yet"
            yield Problem(f"volumes[{index}]", message, "mount a host folder: /host:/path")
    for index, repo in enumerate(task.repos):
        if repo.url is not None:
            message = "is a repository by URL, which is not supported yet"
            yield Problem(f"repos[{index}]", message, "clone it, and give its local path")
        elif repo.branch is not None or repo.hash is not None:
            message = "has a branch or hash, which is not supported yet"
            yield Problem(f"repos[{index}]", message, "check it out in the local folder")
    if task.depends_on:
        yield Problem("depends_on", "is not supported yet", "start this run once the others have ended")
    yield from _of_profile(task, project)


def _of_profile(run: ProfileFields, project: str | None) -> Problems:
    for field, hint in (
        ("utilization_policy", None),
        ("reservation", None),
        ("availability_zones", "regions is supported"),
        ("instances", "fleets chooses among fleets"),
        ("backend_options", None),
        ("max_cost", "max_price bounds the price of an hour, and max_duration the time"),
        ("deadline", "max_duration bounds the time it runs"),
        ("notify", "in a script, perdure apply without -d ends with 0 only if the run is done"),
    ):
        if getattr(run, field):
            yield Problem(field, "is not supported yet", hint)
    if isinstance(run.retry, RetrySpec):
        yield from _of_retry(run.retry)
    for index, fleet in enumerate(run.fleets or ()):
        if project is not None and fleet.project not in (None, project):
            yield Problem(f"fleets[{index}]", "is a fleet of another project, which is not supported yet")


def _of_retry(retry: RetrySpec) -> Problems:
    if retry.scope == "node":
        yield Problem(
            "retry.scope", "is node, which is not supported yet", "all nodes are run again: scope: replica"
        )


def _of_fleet(fleet: FleetConfiguration) -> Problems:
    if fleet.ssh_config is not None:
        yield Problem("ssh_config", "is not supported yet: this version has fleets of this machine")
    for field in ("reservation", "availability_zones", "backend_options"):
        if getattr(fleet, field):
            yield Problem(field, "of a fleet is not supported yet")
    if isinstance(fleet.retry, RetrySpec):
        yield Problem("retry", "of a fleet is not supported yet", "give retry in the runs")
