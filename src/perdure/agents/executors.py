"""Which executor a task gets: ``docker`` when it names an image, ``process`` otherwise.

Both are made alike: ``Preparation(instance, shim folder[, engine])`` in the shim, ``Execution(task, task's folder,
instance[, engine])`` in the runner. The task's folder is ``{shim folder}/tasks/{task id}``; uploaded archives lie
in it as ``archives/{sha256}``, verified. ``engine`` is the container engine's address (``unix:///…``).
The docker half is imported when first needed: it costs time and memory that a process job should not pay.
"""

from __future__ import annotations

import os
from pathlib import Path

from perdure.agents.execution import Execution, Preparation
from perdure.agents.instance import Instance
from perdure.agents.process.execution import ProcessExecution
from perdure.agents.process.preparation import ProcessPreparation
from perdure.agents.protocol import TaskConfig


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
    """The shim's half for a task."""
    if not task.image_name:
        return ProcessPreparation(instance, shim_folder)
    from perdure.agents.docker import DockerPreparation

    return DockerPreparation(instance, shim_folder, engine())


def execution(task: TaskConfig, folder: Path, instance: Instance) -> Execution:
    """The runner's half for a task.

    Raises:
        ExecutionError: it names an image, and there is no container engine here.
    """
    if not task.image_name:
        return ProcessExecution(task, folder, instance)
    from perdure.agents.docker import DockerExecution, no_engine

    address = engine()
    if address is None:
        raise no_engine(task)
    return DockerExecution(task, folder, instance, address)


def container(task: TaskConfig, folder: Path) -> tuple[str, str]:
    """The name and id of the task's container; empty where there is none."""
    if not task.image_name:
        return "", ""
    from perdure.agents.docker import container_of

    return container_of(task, folder)
