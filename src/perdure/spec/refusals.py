"""What the language has and this version does not do yet: refused when a run is submitted, one sentence each."""

from __future__ import annotations

from collections.abc import Iterator

from perdure.spec.grammar.mounts import NetworkMount
from perdure.spec.models.run import Task

_NO_IMAGE = "leave it out, and set an image that has what the commands need"


def refusals(run: Task, project: str) -> Iterator[tuple[str, str, str | None]]:
    """(path, message, hint) of every field that could not be honoured."""
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


def _profile(run: Task, project: str) -> Iterator[tuple[str, str, str | None]]:
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
        if fleet.project is not None and fleet.project != project:
            yield f"fleets[{index}]", "fleets of another project are not supported yet", None


def warnings(run: Task) -> tuple[str, ...]:
    """Fields that are read for the sake of old files, and have no effect."""
    idle = [field for field in ("home_dir", "setup", "single_branch") if field in run.model_fields_set]
    return tuple(f"{field} has no effect" for field in idle)
