"""Which executor a task gets: ``docker`` when it names an image, ``process`` otherwise.

Both are made alike: ``Preparation(instance, shim folder[, engine])`` in the shim, ``Execution(task, task's folder,
instance[, engine])`` in the runner. The task's folder is ``{shim folder}/tasks/{task id}``; uploaded archives lie
in it as ``archives/{sha256}``, verified. ``engine`` is the container engine's address (``unix:///…``).
The docker half is imported when first needed: it costs time and memory that a process job should not pay.
"""

from __future__ import annotations

import os
from pathlib import Path

from perdure.agents.execution import Execution, ExecutionError, Preparation
from perdure.agents.instance import Instance
from perdure.agents.process.execution import ProcessExecution
from perdure.agents.process.preparation import ProcessPreparation
from perdure.agents.protocol import TaskConfig
from perdure.model.statuses import JobReason


def engine() -> str | None:
    """The address of this host's container engine: ``DOCKER_HOST``, Docker's socket, or Podman's."""
    if address := os.environ.get("DOCKER_HOST"):
        return address
    user = os.environ.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
    for path in ("/var/run/docker.sock", "/run/podman/podman.sock", f"{user}/podman/podman.sock"):
        if os.access(path, os.R_OK | os.W_OK):
            return f"unix://{path}"
    return None


def executor(task: TaskConfig) -> str:
    """``docker`` or ``process``."""
    return "docker" if task.image_name else "process"


def preparation(task: TaskConfig, instance: Instance, shim_folder: Path) -> Preparation:
    """The shim's half for a task.

    Raises:
        ExecutionError: it names an image, and there is no container engine here.
    """
    if not task.image_name:
        return ProcessPreparation(instance, shim_folder)
    address = _engine_for(task)
    from perdure.agents.docker import DockerPreparation

    return DockerPreparation(instance, shim_folder, address)


def execution(task: TaskConfig, folder: Path, instance: Instance) -> Execution:
    """The runner's half for a task.

    Raises:
        ExecutionError: it names an image, and there is no container engine here.
    """
    if not task.image_name:
        return ProcessExecution(task, folder, instance)
    address = _engine_for(task)
    from perdure.agents.docker import DockerExecution

    return DockerExecution(task, folder, instance, address)


def _engine_for(task: TaskConfig) -> str:
    address = engine()
    if address is None:
        raise ExecutionError(
            JobReason.CREATING_CONTAINER_ERROR,
            f"The image {task.image_name} needs a container engine, and this host has none. "
            "Install Docker or Podman, point DOCKER_HOST at one, or leave `image` out to run as a process.",
        )
    return address
