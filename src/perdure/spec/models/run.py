"""Fields of every run, and the task."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from perdure.spec.grammar.base import Switch, Text, Written, not_empty, whole, wrong
from perdure.spec.grammar.env import Env
from perdure.spec.grammar.hardware import ResourcesSpec
from perdure.spec.grammar.lifecycle import SignalName
from perdure.spec.grammar.mounts import FileItem, Mount, Repo
from perdure.spec.grammar.names import GroupName, Python, ResourceName, Shell, User, WorkingDir
from perdure.spec.grammar.ports import Port
from perdure.spec.models.notices import Dependency
from perdure.spec.models.profile import ProfileFields

MAX_NODES = 10_000
Commands = tuple[Text, ...]


class RegistryAuthSpec(Written):
    """Who pulls a private image."""

    username: Text
    password: Text


class RunFields(ProfileFields):
    """What every run has."""

    name: ResourceName | None = None
    image: Text | None = None
    python: Python | None = None
    nvcc: Switch | None = None
    docker: Switch | None = None
    privileged: Switch = False
    user: User | None = None
    shell: Shell | None = None
    working_dir: WorkingDir | None = None
    home_dir: Text = "/root"
    """Without effect; read because old files have it."""

    setup: Commands = ()
    """Without effect; read because old files have it."""

    registry_auth: RegistryAuthSpec | None = None
    env: Env = Field(default_factory=dict)
    resources: ResourcesSpec = ResourcesSpec()
    priority: Annotated[int, Field(ge=0, le=100), BeforeValidator(whole)] | None = None
    volumes: tuple[Mount, ...] = ()
    files: tuple[FileItem, ...] = ()
    repos: Annotated[tuple[Repo, ...], Field(max_length=1)] = ()
    single_branch: Switch | None = None
    dstack: Switch = False
    stop_signal: SignalName | None = None
    """What a process is asked to stop with: SIGTERM if unset. Ours."""

    depends_on: tuple[Dependency, ...] = ()
    """Runs that must have ended before this one starts. Ours."""

    @model_validator(mode="after")
    def _one_source_of_software(self) -> Self:
        if self.docker:
            for other in ("image", "python", "nvcc"):
                if getattr(self, other):
                    raise wrong(f"has both docker and {other}", "docker: true brings its own image")
        if self.image is not None and self.python is not None:
            raise wrong("has both image and python", "python chooses the default image; leave one of them out")
        return self


class NodeGroup(Written):
    """Nodes of a task that are alike."""

    name: GroupName | None = None
    nodes: Annotated[int, Field(ge=1, le=MAX_NODES), BeforeValidator(whole)] = 1
    resources: ResourcesSpec = ResourcesSpec()
    commands: Commands = ()
    ports: tuple[Port, ...] = ()


class Task(RunFields):
    """Commands that run and end, on one node or several."""

    type: Literal["task"]
    commands: Commands = ()
    entrypoint: Text | None = None
    ports: tuple[Port, ...] = ()
    nodes: Annotated[int, Field(ge=1, le=MAX_NODES), BeforeValidator(whole)] = 1
    groups: Annotated[tuple[NodeGroup, ...], AfterValidator(not_empty)] | None = None

    @model_validator(mode="after")
    def _something_to_run(self) -> Self:
        if self.groups is not None:
            return self._checked_groups(self.groups)
        if not self.commands and self.image is None:
            raise wrong("has nothing to run", "give commands, an image, or both")
        return self

    def _checked_groups(self, groups: tuple[NodeGroup, ...]) -> Self:
        for field in ("commands", "ports", "entrypoint", "nodes"):
            if field in self.model_fields_set and getattr(self, field):
                raise wrong(f"has both groups and {field}", f"give {field} in each group")
        names = [group.name or str(index) for index, group in enumerate(groups)]
        if len(names) != len(set(names)):
            raise wrong("has two groups of one name")
        for index, group in enumerate(groups):
            if not group.commands and self.image is None:
                raise wrong(f"has nothing to run in groups[{index}]", "give it commands, or the task an image")
        return self
