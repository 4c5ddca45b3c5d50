"""Fields of every run, and the task."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from perdure.spec.grammar.base import Switch, Text, Written, not_empty, whole
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
    """Such as ``ci``."""

    password: Text
    """Such as ``${{ secrets.REGISTRY_PASSWORD }}``, which keeps it out of the file."""


class RunFields(ProfileFields):
    """What every run has."""

    name: ResourceName | None = None
    """Its name among the runs of its project that have not ended. Unset: one is made up."""

    image: Text | None = None
    """The container image, such as ``python:3.12`` or ``ghcr.io/owner/name:tag``. Unset: a process of the
    host on the backend ``local``, the default image elsewhere."""

    python: Python | None = None
    """Which Python the default image has; not together with ``image``."""

    nvcc: Switch | None = None
    """Whether the default image has the CUDA compiler."""

    docker: Switch | None = None
    """Whether the job may run containers of its own: it then has an image of its own, and is privileged."""

    privileged: Switch = False
    """Whether the container has all rights on its host."""

    user: User | None = None
    """Who the commands run as. Unset: the image's own user."""

    shell: Shell | None = None
    """What runs the commands. Unset: ``sh`` with an ``image``, ``bash`` without."""

    working_dir: WorkingDir | None = None
    """Where the commands start. Unset: where the image says; without an image, a folder made for the job."""

    home_dir: Text = "/root"
    """Without effect; read because old files have it."""

    setup: Commands = ()
    """Without effect; read because old files have it."""

    registry_auth: RegistryAuthSpec | None = None
    """Who pulls a private image."""

    env: Env = Field(default_factory=dict)
    """Variables of the job: ``NAME=value``, or ``NAME`` to take its value from where you submit; a list, or a
    map, such as ``[MODE=fast, HF_TOKEN]`` or ``{MODE: fast}``."""

    resources: ResourcesSpec = ResourcesSpec()
    """What the machine of every node must have."""

    priority: Annotated[int, Field(ge=0, le=100), BeforeValidator(whole)] | None = None
    """Of runs that wait for capacity, the highest is served first; ``0`` if unset."""

    volumes: tuple[Mount, ...] = ()
    """Volumes, and folders of the host, that appear in the job."""

    files: tuple[FileItem, ...] = ()
    """Local files and folders that go along with the run."""

    repos: Annotated[tuple[Repo, ...], Field(max_length=1)] = ()
    """The repository that goes along with the run; one at most."""

    single_branch: Switch | None = None
    """Without effect; read because files for dstack have it."""

    dstack: Switch = False
    """Whether the job can reach the server. Never here: nothing inside a run reaches the control plane."""

    stop_signal: SignalName | None = None
    """What its processes are asked to stop with; ``SIGTERM`` if unset. Ours."""

    depends_on: tuple[Dependency, ...] = ()
    """Runs that must have ended before this one starts. Ours."""


class NodeGroup(Written):
    """Nodes of a task that are alike."""

    name: GroupName | None = None
    """Unset: its number, from 0."""

    nodes: Annotated[int, Field(ge=1, le=MAX_NODES), BeforeValidator(whole)] = 1
    """How many machines."""

    resources: ResourcesSpec = ResourcesSpec()
    """What each of its machines must have."""

    commands: Commands = ()
    """What its nodes run, such as ``[python worker.py]``."""

    ports: tuple[Port, ...] = ()
    """Ports of its nodes that you reach from your machine."""


class Task(RunFields):
    """Commands that run and end, on one node or several."""

    type: Literal["task"]
    """What it is."""

    commands: Commands = ()
    """Run one after another in one shell; the first that fails ends the job. Such as ``[python train.py]``."""

    entrypoint: Text | None = None
    """The main process, such as ``python -m trainer``; the commands are its arguments, and there is no shell."""

    ports: tuple[Port, ...] = ()
    """Ports of the job, each reached at the address of its instance; another local port (``80:8000``) is read, and
    not forwarded yet. Such as ``[8000]``."""

    nodes: Annotated[int, Field(ge=1, le=MAX_NODES), BeforeValidator(whole)] = 1
    """How many machines, all had at once or not at all."""

    groups: Annotated[tuple[NodeGroup, ...], AfterValidator(not_empty)] | None = None
    """Kinds of nodes that differ, in place of ``nodes``, ``commands`` and ``ports``,
    such as ``[{nodes: 2, commands: [python train.py]}]``."""
