"""What a task's container is asked to be: names, labels, limits, network, mounts."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import UUID

from perdure.agents.docker_log import log_config
from perdure.agents.docker_pull import with_tag
from perdure.agents.environment import job_environment
from perdure.agents.execution import ExecutionError
from perdure.agents.protocol import PortMapping, SubmitBody, TaskConfig
from perdure.model.statuses import JobReason

TASK_LABEL = "dev.perdure.task"
RUN_LABEL = "dev.perdure.run"
SUBMISSION_LABEL = "dev.perdure.submission"

HOSTFILE = "/etc/perdure/hostfile"
"""Where a job finds the MPI hostfile."""

MAX_STRING = 128 * 1024 - 1
"""Bytes of one ``NAME=VALUE`` or argument: Linux's MAX_ARG_STRLEN, less the zero at its end."""

MAX_STRINGS = 2 * 1024 * 1024 - 64 * 1024
"""Bytes of all of them and their pointers: a quarter of the usual stack (execve(2)), less what the init adds."""

POINTER = 8

GPU_CAPABILITIES = ["gpu", "utility", "compute", "graphics", "video", "display", "compat32"]


def container_name(task: TaskConfig) -> str:
    """Readable, and of this submission alone: the job's name and the task's id."""
    readable = re.sub(r"[^a-zA-Z0-9_.-]", "-", task.name).strip("-._") or "job"
    return f"perdure-{readable[:60]}-{task.id.hex[:12]}"


def task_filter(task_id: UUID) -> dict[str, list[str]]:
    """The filter that lists the containers of one task, and of no other."""
    return {"label": [f"{TASK_LABEL}={task_id}"]}


def creation(
    task: TaskConfig,
    job: SubmitBody,
    *,
    working_dir: str,
    hostfile: Path,
    ports: list[PortMapping],
    log_drivers: list[str],
) -> dict[str, Any]:
    """The body of ``POST /containers/create``.

    Raises:
        ExecutionError: the environment is more than Linux can hand to a process.
    """
    environment = job_environment(job, working_dir, HOSTFILE)
    _check_sizes(job.commands, environment)
    body: dict[str, Any] = {
        "Image": with_tag(task.image_name),
        "Env": [f"{name}={value}" for name, value in environment.items()],
        "WorkingDir": working_dir,
        "Labels": {
            TASK_LABEL: str(task.id),
            RUN_LABEL: str(task.run_id),
            SUBMISSION_LABEL: str(task.submission),
        },
        "Tty": False,
        "OpenStdin": False,
        "HostConfig": _host_config(task, hostfile, ports, log_drivers),
    }
    if task.container_user:
        body["User"] = task.container_user
    if job.commands:
        body |= {"Entrypoint": job.commands[:1], "Cmd": job.commands[1:]}
    if ports:
        body["ExposedPorts"] = {f"{port.container}/tcp": {} for port in ports}
    return body


def _host_config(
    task: TaskConfig, hostfile: Path, ports: list[PortMapping], log_drivers: list[str]
) -> dict[str, Any]:
    config: dict[str, Any] = {
        "Init": True,
        "NetworkMode": task.network_mode,
        "Privileged": task.privileged,
        "Mounts": _mounts(task, hostfile),
        "RestartPolicy": {"Name": "no"},
        "PortBindings": {
            f"{port.container}/tcp": [{"HostIp": "127.0.0.1", "HostPort": str(port.host)}] for port in ports
        },
    }
    if driver := log_config(log_drivers):
        config["LogConfig"] = driver
    if task.cpu:
        config["NanoCpus"] = round(task.cpu * 1e9)
    if task.memory:
        # No swap on top: over the limit a job is killed, not slowed down a hundredfold.
        config |= {"Memory": task.memory, "MemorySwap": task.memory}
    if task.shm_size:
        # A tmpfs as dstack makes it: the engine's is noexec, which some compilers of kernels cannot use.
        config["Tmpfs"] = {"/dev/shm": f"rw,nosuid,nodev,exec,size={task.shm_size}"}
    if task.gpu:
        devices: dict[str, Any] = {"Driver": "nvidia", "Capabilities": [GPU_CAPABILITIES]}
        devices |= {"DeviceIDs": task.gpu_ids} if task.gpu_ids else {"Count": task.gpu}
        config["DeviceRequests"] = [devices]
    return config


def _mounts(task: TaskConfig, hostfile: Path) -> list[dict[str, Any]]:
    mounts = [{"Type": "bind", "Source": str(hostfile), "Target": HOSTFILE, "ReadOnly": True}]
    for mount in task.instance_mounts:
        if mount.optional and not Path(mount.instance_path).is_dir():
            continue
        target = str(PurePosixPath("/", mount.path))
        mounts.append({"Type": "bind", "Source": mount.instance_path, "Target": target})
    return mounts


def _check_sizes(argv: list[str], environment: dict[str, str]) -> None:
    """Said before the start: an init that cannot be started for this only leaves a line in the log."""
    for name, value in environment.items():
        size = len(value.encode())
        if len(name.encode()) + 1 + size > MAX_STRING:
            limit = MAX_STRING - len(name.encode()) - 1
            raise _too_large(f"The environment variable {name} has {size} bytes; Linux takes at most {limit}.")
    for word in argv:
        if (size := len(word.encode())) > MAX_STRING:
            raise _too_large(f"The commands have {size} bytes; Linux takes at most {MAX_STRING}.")
    strings = [*argv, *(f"{name}={value}" for name, value in environment.items())]
    if (total := sum(len(string.encode()) + 1 + POINTER for string in strings)) > MAX_STRINGS:
        raise _too_large(f"The environment and the commands have {total} bytes; Linux takes at most {MAX_STRINGS}.")


def _too_large(message: str) -> ExecutionError:
    return ExecutionError(JobReason.CREATING_CONTAINER_ERROR.value, f"{message} Put it in a file.")
