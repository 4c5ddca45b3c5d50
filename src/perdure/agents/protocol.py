"""What the shim and the runner say over HTTP: bodies, answers and additions, in one place.

Shapes follow dstack's shim and runner APIs (``docs/agents.md``); ours beyond theirs are marked. Unknown fields are
ignored, 1 MiB a JSON body, errors are ``text/plain``. Both listen on unix sockets of mode 0600 only. Every call
carries ``Authorization: Bearer TOKEN`` and ``X-Perdure-Instance: UUID``; a wrong token is 401, another instance's
UUID is 421.

Shim::

    GET  /api/healthcheck              -> Health
    GET  /api/tasks                    -> TaskList
    POST /api/tasks        TaskConfig  -> TaskInfo   the same id again is success (ours)
    GET  /api/tasks/{id}               -> TaskInfo   ?wait=S&seen=STATUS long-polls for a change (ours)
    POST /api/tasks/{id}/terminate Terminate -> TaskInfo   repeatable; unknown id 404
    POST /api/tasks/{id}/remove        -> ""         repeatable: an unknown id is success (ours); 409 not terminated

Runner (one a task; its socket's path is ``TaskInfo.runner_socket``)::

    GET  /api/healthcheck              -> Health
    POST /api/submit       SubmitBody  -> ""         repeatable, also after it has been run (ours)
    POST /api/upload_archive/{sha256}  raw bytes -> ""   checked against the hash; repeatable (ours: raw bytes)
    POST /api/run                      -> RunAnswer  repeatable: never runs twice (ours)
    GET  /api/state?wait=S&seen=STATE  -> JobState   long-polls for a change (ours)
    GET  /api/logs?offset=N&wait=S     -> raw bytes of the log, at most 1 MiB, as produced (ours);
                                          headers X-Perdure-State, X-Perdure-Log-Length, X-Perdure-Log-Complete: 0|1
    POST /api/stop         StopBody    -> JobState   repeatable; SIGTERM to the whole tree, SIGKILL after grace
    POST /api/ack                      -> ""         the result has been recorded: it may be forgotten (ours)
"""

from __future__ import annotations

from enum import StrEnum
from uuid import UUID

from pydantic import BaseModel, ConfigDict

PROTOCOL_VERSION = "0.1.0"
"""Semver of the additions. An agent answers callers of its own minor and the one before."""


class Body(BaseModel):
    model_config = ConfigDict(extra="ignore")


class Health(Body):
    service: str
    """``perdure-shim`` or ``perdure-runner``."""

    version: str
    instance_id: UUID
    sandbox: str = ""
    """Of the shim (ours): what holds process jobs here, ``bubblewrap`` or ``none``."""


class TaskStatus(StrEnum):
    PENDING = "pending"
    PREPARING = "preparing"
    PULLING = "pulling"
    CREATING = "creating"
    RUNNING = "running"
    TERMINATED = "terminated"


class PortMapping(Body):
    host: int
    container: int


class PullProgress(Body):
    downloaded_bytes: int = 0
    extracted_bytes: int = 0
    total_bytes: int = 0
    is_total_bytes_final: bool = False


class Mount(Body):
    """A folder of the host in the job."""

    instance_path: str
    path: str
    optional: bool = False


class TaskConfig(Body):
    """One submission of one job, to the shim. Memory and shm in bytes, cpu in cores; 0 is all of it."""

    id: UUID
    name: str
    run_id: UUID
    submission: int = 0
    """Fence (ours): a higher one of the same run, replica and node ends every lower one at once."""

    slot: str = ""
    """``{replica}-{node}``, for the fence."""

    image_name: str = ""
    """Empty: run in ``process``."""

    registry_username: str = ""
    registry_password: str = ""
    container_user: str = ""
    privileged: bool = False
    gpu: int = 0
    gpu_ids: list[str] = []
    """Which ones, as the driver names them (ours); empty: any ``gpu`` of them."""

    cpu: float = 0
    memory: int = 0
    shm_size: int = 0
    network_mode: str = "host"
    ports: list[int] = []
    """Container ports to publish in bridge mode."""

    instance_mounts: list[Mount] = []
    pull_timeout: float = 1200.0


class TaskInfo(Body):
    id: UUID
    status: TaskStatus
    termination_reason: str = ""
    termination_message: str = ""
    ports: list[PortMapping] = []
    image_pull_progress: PullProgress | None = None
    container_name: str = ""
    container_id: str = ""
    executor: str = "process"
    runner_socket: str = ""
    """Path on the host; set when ``running``."""


class TaskList(Body):
    tasks: list[TaskInfo] = []


class Terminate(Body):
    termination_reason: str = ""
    termination_message: str = ""
    timeout: float = 10.0


class Archive(Body):
    sha256: str
    path: str = "."
    """Where it is unpacked: relative to the working directory, absolute, or ``~/…``."""

    kind: str = "files"
    """``repo`` or ``files``."""


class SubmitBody(Body):
    """The job, to the runner."""

    run_id: UUID
    run_name: str
    project: str = ""
    job_id: UUID
    job_name: str
    replica: int = 0
    node: int = 0
    submission: int = 0
    commands: list[str] = []
    """The full argv of the main process. Empty: the image's own entrypoint and command."""

    env: dict[str, str] = {}
    working_dir: str | None = None
    max_duration: float | None = None
    stop_grace: float = 10.0
    stop_signal: str = "SIGTERM"
    archives: list[Archive] = []
    node_addresses: list[str] = []
    gpus_per_node: int = 0
    repo_exists_action: str = "error"


class RunAnswer(Body):
    working_dir: str = ""
    username: str = ""


class RunnerState(StrEnum):
    WAIT_SUBMIT = "wait_submit"
    WAIT_RUN = "wait_run"
    RUNNING = "running"
    ENDED = "ended"


class JobState(Body):
    """``reason`` is a JobReason value, set when ended. ``exit_status``: 0 to 255, 128 + signal, as a shell says."""

    state: RunnerState
    reason: str = ""
    message: str = ""
    exit_status: int | None = None
    stop_requested: bool = False
    """A stop came before the process ended: this end is not a success, whatever the exit status."""

    log_length: int = 0
    log_complete: bool = False


class StopBody(Body):
    """``signal`` empty: the job's own ``stop_signal``."""

    grace: float = 10.0
    signal: str = ""
    reason: str = "terminated_by_user"
