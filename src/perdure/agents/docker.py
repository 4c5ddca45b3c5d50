"""How a job runs in a container: the user's command is its main process, and the image is left alone.

The shim pulls and removes (``DockerPreparation``), the runner starts and watches (``DockerExecution``). It
outlives both; what they know of it is in the engine, under the task's label, and in ``container.json``.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from pydantic import BaseModel

from perdure.agents import disk, docker_ports, docker_signals, identity
from perdure.agents.docker_code import ContainerFiles
from perdure.agents.docker_container import container_name, creation, task_filter
from perdure.agents.docker_engine import SLOW_TIMEOUT, Engine, EngineError, EngineUnreachable
from perdure.agents.docker_exit import describe_exit, describe_start_failure, ended_at
from perdure.agents.docker_log import LogCopy
from perdure.agents.docker_pull import ensure_image, with_tag
from perdure.agents.environment import mpi_hostfile
from perdure.agents.execution import ExecutionError, Exit
from perdure.agents.instance import Instance
from perdure.agents.protocol import PortMapping, PullProgress, RunAnswer, SubmitBody, TaskConfig
from perdure.model.statuses import JobReason

T = TypeVar("T")

RECORD = "container.json"
ASKED = "asked.json"

RETRY_DELAY = 0.5
"""Seconds between looks at an engine that does not answer, or at a container that is on its way."""

START_SETTLES = 2.0
"""Seconds that a start asked for by a runner, which then died, is given to show."""

CREATE_SETTLES = 2.0
"""Seconds that a container asked for by a runner, which then died, is given to show."""

LOG_SETTLES = 5.0
"""Seconds that a log of an ended container may be silent before it is cut and read anew."""

ENGINE_STARTS = 60.0
"""Seconds for an engine to answer after the host's restart."""

KILL_TIMEOUT = 30.0
REMOVE_TIMEOUT = 120.0


class ContainerRecord(BaseModel):
    """``container.json`` in the task's folder, written before the container is started: from then on it is never
    made again. ``started``: the engine said that it was."""

    container_id: str
    started: bool = False
    working_dir: str
    username: str


class Asked(BaseModel):
    """``asked.json`` in the task's folder: there once the engine was asked for a container. ``answered``: it made
    one; else that may still be under way."""

    answered: bool = False


class DockerPreparation:
    """``address`` is None where there is no engine."""

    def __init__(self, instance: Instance, shim_folder: Path, address: str | None):
        self._address = address

    async def prepare(
        self, task: TaskConfig, folder: Path, progress: Callable[[PullProgress], None]
    ) -> list[PortMapping]:
        """Pull the image and choose ports.

        Raises:
            ExecutionError
        """
        if self._address is None:
            raise no_engine(task)
        for mount in task.instance_mounts:
            _make_mount(mount.instance_path, mount.optional)
        async with Engine(self._address) as engine:
            await ensure_image(engine, task, progress)
        return docker_ports.choose(task, folder)

    async def remove(self, task: TaskConfig, folder: Path) -> None:
        """Kill and delete the task's container, with its anonymous volumes. Safe to repeat, also at once. Needs no
        engine for a task that never came to have one; of one whose folder was deleted, only the engine can tell.

        Raises:
            EngineError, EngineUnreachable: it may still be there; ask again.
        """
        if not _may_have_container(folder):
            return
        if self._address is None:
            raise EngineUnreachable("this host", "there is none any more")
        async with Engine(self._address) as engine:
            await remove_containers(engine, task, folder)

    async def has_result(self, task: TaskConfig, folder: Path) -> bool:
        """Whether the container had ended when the host went down, which the engine knows. One that was running
        then ends, for the engine, when it is back itself. An engine that is still starting is waited for."""
        record = disk.read(folder / RECORD, ContainerRecord)
        if record is None or self._address is None:
            return False
        async with Engine(self._address) as engine:
            with contextlib.suppress(EngineError, TimeoutError):
                async with asyncio.timeout(ENGINE_STARTS):
                    path = f"/containers/{record.container_id}/json"
                    state = (await _answered(lambda: engine.call("GET", path)))["State"]
                    return state["Status"] == "exited" and ended_at(state) < time.time() - identity.uptime()
        return False


class DockerExecution:
    def __init__(self, task: TaskConfig, folder: Path, instance: Instance, address: str):
        self._task = task
        self._folder = folder
        self._record = folder / RECORD
        self._engine = Engine(address)

    async def start(self, job: SubmitBody) -> RunAnswer:
        """Make the container, put the code into it, start it; only answers if that was done before.

        Raises:
            ExecutionError
        """
        try:
            record = disk.read(self._record, ContainerRecord)
            if record is None:
                record = await self._create(job)
                await self._start(record)
            elif not record.started:
                await self._start_again(record)
        except EngineError as error:
            raise ExecutionError(*describe_start_failure(error.message, self._task, job)) from error
        return RunAnswer(working_dir=record.working_dir, username=record.username)

    async def wait(self) -> Exit:
        """Until the container has ended and its log is whole. An engine that is away is waited for.

        Raises:
            ExecutionError: the container was removed by somebody else, or was never started.
        """
        record = self._known()
        log = LogCopy(self._engine, record.container_id, self._folder / "log")
        while True:
            try:
                await self._follow(record, log)
                container = await self._inspect(record)
                while not container["State"]["Running"]:
                    if await log.complete():
                        return await describe_exit(self._engine, container, self._task)
                    await log.copy(follow=False)
            except EngineUnreachable:
                pass
            except EngineError as error:
                if error.status == 404:
                    raise _lost() from error
            await asyncio.sleep(RETRY_DELAY)

    async def signal(self, name: str) -> None:
        """To every process in the container. An engine that is away is waited for."""
        container_id = self._known().container_id
        await _answered(lambda: docker_signals.send(self._engine, container_id, name))

    async def kill(self) -> None:
        """End the container: with its init, the kernel ends every process of its pid namespace. An engine that is
        away is waited for.

        Raises:
            ExecutionError: it still runs after half a minute.
        """
        if disk.read(self._record, ContainerRecord) is not None:
            await _answered(self._kill)

    async def _kill(self) -> None:
        record = self._known()
        try:
            async with asyncio.timeout(KILL_TIMEOUT):
                while (await self._inspect(record))["State"]["Running"]:
                    await self._kill_once(record)
                    await asyncio.sleep(0.05)
        except TimeoutError as error:
            raise ExecutionError(
                JobReason.EXECUTOR_ERROR.value, f"The container still runs {KILL_TIMEOUT:g} s after its kill."
            ) from error
        except EngineError as error:
            if error.status != 404:
                raise

    async def _kill_once(self, record: ContainerRecord) -> None:
        path = f"/containers/{record.container_id}/kill"
        try:
            await self._engine.call("POST", path, params={"signal": "SIGKILL"})
        except EngineError as error:
            if error.status != 409:
                raise

    async def _create(self, job: SubmitBody) -> ContainerRecord:
        """A container with the code in it, not started. One that a killed runner left half-made is made anew."""
        await remove_containers(self._engine, self._task, self._folder)
        hostfile = self._folder / "hostfile"
        hostfile.write_text(mpi_hostfile(job))
        hostfile.chmod(0o644)
        image = await self._engine.call("GET", f"/images/{with_tag(self._task.image_name)}/json")
        info = await self._engine.info()
        working_dir = _working_dir(job, image["Config"])
        user = self._task.container_user or image["Config"].get("User") or ""
        body = creation(
            self._task,
            job,
            working_dir=working_dir,
            hostfile=hostfile,
            ports=docker_ports.chosen(self._folder),
            log_drivers=info.get("Plugins", {}).get("Log") or [],
        )
        container_id = await self._create_container(body)
        files = ContainerFiles(self._engine, container_id)
        await files.put_code(job, self._folder / "archives", working_dir, user)
        record = ContainerRecord(container_id=container_id, working_dir=working_dir, username=user or "root")
        disk.write(self._record, record, durable=True)
        return record

    async def _create_container(self, body: dict[str, Any]) -> str:
        asked = self._folder / ASKED
        disk.write(asked, Asked())
        params = {"name": container_name(self._task)}
        try:
            made = await self._engine.call(
                "POST", "/containers/create", params=params, body=body, timeout=SLOW_TIMEOUT
            )
        except EngineUnreachable:
            raise
        except EngineError:
            asked.unlink()
            raise
        disk.write(asked, Asked(answered=True))
        return made["Id"]

    async def _start(self, record: ContainerRecord) -> None:
        path = f"/containers/{record.container_id}/start"
        try:
            await self._engine.call("POST", path, timeout=SLOW_TIMEOUT)
        except EngineUnreachable:
            await self._start_again(record)
        else:
            self._started(record)

    async def _start_again(self, record: ContainerRecord) -> None:
        """Start what may have been asked to be started before: that start may still be under way, and a short job
        may have ended by now, so a container is started only if it stays unstarted."""
        deadline = asyncio.get_running_loop().time() + START_SETTLES
        while asyncio.get_running_loop().time() < deadline:
            try:
                container = await _answered(lambda: self._inspect(record))
            except EngineError as error:
                raise (_lost() if error.status == 404 else error) from error
            if container["State"]["Status"] != "created":
                self._started(record)
                return
            await asyncio.sleep(RETRY_DELAY / 10)
        await self._start(record)

    def _started(self, record: ContainerRecord) -> None:
        disk.write(self._record, record.model_copy(update={"started": True}))

    async def _follow(self, record: ContainerRecord, log: LogCopy) -> None:
        """Copy the log until the container ends. An engine may not end the log of an ended one: it is cut."""
        copying = asyncio.create_task(log.copy(follow=True))
        ending = asyncio.create_task(self._ended(record))
        try:
            await asyncio.wait({copying, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not copying.done():
                await ending
                await _silent(copying, log)
            if copying.done():
                await copying
        finally:
            copying.cancel()
            ending.cancel()
            await asyncio.gather(copying, ending, return_exceptions=True)

    async def _ended(self, record: ContainerRecord) -> None:
        await self._engine.call("POST", f"/containers/{record.container_id}/wait", timeout=None)

    async def _inspect(self, record: ContainerRecord) -> dict[str, Any]:
        return await self._engine.call("GET", f"/containers/{record.container_id}/json")

    def _known(self) -> ContainerRecord:
        record = disk.read(self._record, ContainerRecord)
        if record is None:
            raise ExecutionError(JobReason.EXECUTOR_ERROR.value, "The job has not been started.")
        return record


async def _silent(copying: asyncio.Task[None], log: LogCopy) -> None:
    """Until the copy is done, or has read nothing for a while."""
    read = -1
    while not copying.done() and read != log.bytes_read:
        read = log.bytes_read
        await asyncio.wait({copying}, timeout=LOG_SETTLES)


async def _answered(call: Callable[[], Awaitable[T]]) -> T:
    """What a call answers, repeated while the engine is away."""
    while True:
        try:
            return await call()
        except EngineUnreachable:
            await asyncio.sleep(RETRY_DELAY)


def _may_have_container(folder: Path) -> bool:
    return (folder / ASKED).exists() or not folder.exists()


async def remove_containers(engine: Engine, task: TaskConfig, folder: Path) -> None:
    """Delete every container of the task, running or not, with anonymous volumes, and see that they are gone.

    A runner that was killed while the engine made its container leaves one that shows a moment later: where that
    may be, a while without any is waited for.

    Raises:
        EngineError, EngineUnreachable
    """
    params = {"all": 1, "filters": json.dumps(task_filter(task.id))}
    asked = disk.read(folder / ASKED, Asked)
    quiet = CREATE_SETTLES if asked is not None and not asked.answered else 0.0
    clock = asyncio.get_running_loop().time
    last_seen = clock()
    async with asyncio.timeout(REMOVE_TIMEOUT):
        while True:
            containers = await engine.call("GET", "/containers/json", params=params)
            for container in containers:
                await _remove(engine, container)
                last_seen = clock()
            if not containers and clock() >= last_seen + quiet:
                return
            await asyncio.sleep(0.02)


async def _remove(engine: Engine, container: dict[str, Any]) -> None:
    try:
        await engine.call(
            "DELETE", f"/containers/{container['Id']}", params={"force": 1, "v": 1}, timeout=SLOW_TIMEOUT
        )
    except EngineError as error:
        # Gone, or being removed by another call of ours.
        if error.status not in (404, 409):
            raise


def _working_dir(job: SubmitBody, image: dict[str, Any]) -> str:
    base = PurePosixPath("/", image.get("WorkingDir") or "/")
    return str(base / job.working_dir) if job.working_dir else str(base)


def _make_mount(path: str, optional: bool) -> None:
    folder = Path(path)
    if folder.exists():
        return
    try:
        folder.mkdir(parents=True)
        folder.chmod(0o777)
    except OSError as error:
        if not optional:
            raise ExecutionError(
                JobReason.EXECUTOR_ERROR.value, f"The instance's {path} cannot be made: {error.strerror}."
            ) from error


def container_of(task: TaskConfig, folder: Path) -> tuple[str, str]:
    """The name and id of the task's container; empty until there is one with everything in it."""
    record = disk.read(folder / RECORD, ContainerRecord)
    return ("", "") if record is None else (container_name(task), record.container_id)


def no_engine(task: TaskConfig) -> ExecutionError:
    """Said of a task that names an image, where nothing can run it."""
    return ExecutionError(
        JobReason.CREATING_CONTAINER_ERROR.value,
        f"The image {task.image_name} needs a container engine, and this host has none. "
        "Install Docker or Podman, point DOCKER_HOST at one, or leave `image` out to run as a process.",
    )


def _lost() -> ExecutionError:
    return ExecutionError(
        JobReason.EXECUTOR_ERROR.value, "The container is gone, and with it the exit status: somebody removed it."
    )
