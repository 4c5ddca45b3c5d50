"""What an exit status, or a start that failed, means."""

from __future__ import annotations

from datetime import datetime
from pathlib import PurePosixPath
from typing import Any

from perdure.agents.docker_code import ContainerFiles
from perdure.agents.docker_engine import Engine
from perdure.agents.execution import Exit
from perdure.agents.protocol import SubmitBody, TaskConfig
from perdure.model.statuses import JobReason

COMMAND_NOT_FOUND = 127
MIB = 1 << 20


async def describe_exit(engine: Engine, container: dict[str, Any], task: TaskConfig) -> Exit:
    """The end of a container that has ended, from its inspection."""
    state = container["State"]
    status = int(state["ExitCode"])
    if status and state.get("OOMKilled"):
        limit = f"the limit is {task.memory / MIB:g} MB" if task.memory else "the instance has no more"
        return Exit(status, f"out of memory: {limit}")
    if status == COMMAND_NOT_FOUND:
        return Exit(status, await _not_found(engine, container))
    return Exit(status, state.get("Error") or "")


def ended_at(state: dict[str, Any]) -> float:
    """When a container ended, in seconds since 1970, by its inspection. The engine writes nanoseconds."""
    return datetime.fromisoformat(state["FinishedAt"]).timestamp()


def describe_start_failure(message: str, task: TaskConfig, job: SubmitBody) -> tuple[str, str]:
    """The reason and the words for what the engine said to a create or start."""
    said = message.lower()
    reason = JobReason.CREATING_CONTAINER_ERROR.value
    if "no command specified" in said:
        return reason, f"The image {task.image_name} has no command of its own: write `commands`."
    if "port is already allocated" in said or "address already in use" in said:
        return JobReason.PORTS_BINDING_FAILED.value, f"A port could not be published: {message}"
    if "unable to find user" in said or "no matching entries in passwd" in said:
        return reason, f"The image {task.image_name} has no user {task.container_user!r}."
    if "could not select device driver" in said:
        return reason, f"The container engine cannot give GPUs to a container: {message}"
    if "not a directory" in said:
        return reason, f"The working directory {job.working_dir} is not a folder in the image."
    return reason, message


async def _not_found(engine: Engine, container: dict[str, Any]) -> str:
    """Whether it is the main command that is missing, or something a shell called."""
    command = container["Path"]
    path = PurePosixPath(command)
    folders = [PurePosixPath("/")]
    if len(path.parts) == 1:
        folders = [PurePosixPath(folder) for folder in _search_path(container) if folder.startswith("/")]
    else:
        folders = [PurePosixPath(container["Config"]["WorkingDir"] or "/")]
    files = ContainerFiles(engine, container["Id"])
    for folder in folders:
        if await files.exists(folder / path):
            return ""
    return f"command not found: {command}"


def _search_path(container: dict[str, Any]) -> list[str]:
    for variable in container["Config"]["Env"] or []:
        name, _, value = variable.partition("=")
        if name == "PATH":
            return value.split(":")
    return ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
