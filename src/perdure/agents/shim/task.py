"""One task's life on its instance: prepare, start the runner, keep it running, end it, remove it.

Each step is on disk before it is taken, and each may be taken again. Ending is one task of asyncio that nobody's
impatience interrupts: a caller that hangs up, or comes twice, changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.exceptions import HTTPException

from perdure.agents import disk, http, identity
from perdure.agents.execution import ExecutionError
from perdure.agents.executors import executor, preparation
from perdure.agents.identity import Process
from perdure.agents.instance import Instance
from perdure.agents.protocol import (
    JobState,
    PullProgress,
    RunnerState,
    StopBody,
    TaskConfig,
    TaskInfo,
    TaskStatus,
    Terminate,
)
from perdure.agents.runner.record import JobRecord, Phase
from perdure.agents.shim.record import TaskRecord
from perdure.agents.shim.zygote import Zygote
from perdure.model.statuses import JobReason

_LOG = logging.getLogger("perdure.shim")
_KILL_PATIENCE = 25.0
"""Seconds a runner gets for the end of a job, beyond the grace."""


class Task:
    def __init__(
        self,
        folder: Path,
        config: TaskConfig,
        record: TaskRecord,
        instance: Instance,
        shim_folder: Path,
        zygote: Zygote,
    ):
        self.folder = folder
        self.config = config
        self.record = record
        self._instance = instance
        self._shim_folder = shim_folder
        self._zygote = zygote
        self._progress: PullProgress | None = None
        self._changed = asyncio.Condition()
        self._life: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._removing: asyncio.Task[None] | None = None

    def info(self) -> TaskInfo:
        """As it is now."""
        record = self.record
        socket = self.folder / "runner.sock"
        return TaskInfo(
            id=self.config.id,
            status=record.status,
            termination_reason=record.termination_reason,
            termination_message=record.termination_message,
            ports=record.ports,
            image_pull_progress=self._progress,
            executor=executor(self.config),
            runner_socket=str(socket) if record.status in (TaskStatus.RUNNING, TaskStatus.TERMINATED) else "",
        )

    async def changed(self, seen: str, wait: float) -> TaskInfo:
        """The task as soon as its status is another than ``seen``, at the latest after ``wait`` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait), self._changed:
                await self._changed.wait_for(lambda: self.record.status.value != seen)
        return self.info()

    def live(self, first: Callable[[], Awaitable[None]] | None = None) -> None:
        """Go on from where the record says; ``first`` is waited for before anything is acquired."""
        if self.record.terminating is not None and self.record.status is not TaskStatus.TERMINATED:
            self._ending = asyncio.create_task(self._end(self.record.terminating))
        elif self.record.boot != identity.boot_id():
            self._life = asyncio.create_task(self._after_reboot())
        elif self.record.status is not TaskStatus.TERMINATED:
            self._life = asyncio.create_task(self._live(first))

    async def terminate(self, wish: Terminate) -> TaskInfo:
        """End it, from whatever state; returns when it has ended."""
        if self.record.status is not TaskStatus.TERMINATED:
            if self._ending is None:
                await self._save(terminating=wish)
                self._ending = asyncio.create_task(self._end(wish))
            elif self.record.terminating is not None and wish.timeout < self.record.terminating.timeout:
                with contextlib.suppress(OSError, ValueError, TimeoutError):
                    await self._stop_job(wish)
            await asyncio.shield(self._ending)
        return self.info()

    async def remove(self) -> None:
        """Kill what is left and delete everything of it.

        Raises:
            HTTPException: 409, not terminated; 500, it could not be cleaned up.
        """
        if self.record.status is not TaskStatus.TERMINATED:
            raise HTTPException(409, "The task has not been terminated.")
        if self._removing is None or self._removing.done():
            self._removing = asyncio.create_task(self._remove())
        try:
            await asyncio.shield(self._removing)
        except (ExecutionError, OSError) as error:
            raise HTTPException(500, f"The task could not be removed: {error}") from error

    async def _live(self, first: Callable[[], Awaitable[None]] | None) -> None:
        try:
            if first is not None:
                await first()
            if self.record.status is not TaskStatus.RUNNING:
                await self._prepare()
            await self._supervise()
        except ExecutionError as error:
            await self._ended(error.reason, error.message)
        except OSError as error:
            _LOG.exception("task %s", self.config.id)
            await self._ended(JobReason.EXECUTOR_ERROR, f"The host could not prepare the task: {error}")

    async def _prepare(self) -> None:
        await self._save(status=TaskStatus.PREPARING)
        half = preparation(self.config, self._instance, self._shim_folder)
        if self.config.image_name:
            await self._save(status=TaskStatus.PULLING)
        ports = await half.prepare(self.config, self.folder, self._pulled)
        await self._save(status=TaskStatus.CREATING, ports=ports)

    async def _supervise(self) -> None:
        """Have a runner, and start another whenever it dies."""
        pause = 0.05
        while True:
            process = self._runner()
            if process is None or not process.alive:
                await self._zygote.start_runner(self.folder)
                process = self._runner()
            if self.record.status is not TaskStatus.RUNNING:
                await self._save(status=TaskStatus.RUNNING)
            begun = identity.uptime()
            if process is not None:
                await process.gone()
            _LOG.warning("task %s: its runner died, starting another", self.config.id)
            pause = 0.05 if identity.uptime() - begun > 10 else min(pause * 2, 5.0)
            await asyncio.sleep(pause)

    async def _end(self, wish: Terminate) -> None:
        await self._leave(self._life)
        try:
            await self._stop_job(wish)
        except (OSError, ValueError, TimeoutError) as error:
            _LOG.warning("task %s: its runner does not end it (%r): killed", self.config.id, error)
            try:
                await self._kill()
            except (OSError, ExecutionError):
                _LOG.exception("task %s: something of it is left", self.config.id)
        await self._ended(wish.termination_reason, wish.termination_message)

    async def _stop_job(self, wish: Terminate) -> None:
        """Through its runner, if there is a job that is not over."""
        job = disk.read(JobRecord.path(self.folder), JobRecord)
        process = self._runner()
        running = job is not None and job.phase in (Phase.STARTING, Phase.RUNNING)
        if process is None or not process.alive:
            if not running:
                return
            await self._zygote.start_runner(self.folder)
        reason = wish.termination_reason or JobReason.TERMINATED_BY_SERVER
        stop = StopBody(grace=wish.timeout, reason=reason)
        answer = await self._call("POST", "/api/stop", stop.model_dump_json().encode(), 5)
        deadline = identity.uptime() + wish.timeout + _KILL_PATIENCE
        while (state := JobState.model_validate_json(answer)).state is not RunnerState.ENDED:
            if identity.uptime() > deadline:
                raise TimeoutError
            answer = await self._call("GET", f"/api/state?wait=10&seen={state.state.value}", b"", 20)

    async def _kill(self) -> None:
        """The runner, and then everything of the job."""
        process = self._runner()
        if process is not None and process.alive:
            process.kill()
            await process.gone()
        await preparation(self.config, self._instance, self._shim_folder).remove(self.config, self.folder)

    async def _remove(self) -> None:
        await self._leave(self._life)
        await self._kill()
        trash = self._shim_folder / "trash" / str(self.config.id)
        trash.parent.mkdir(mode=0o700, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            self.folder.rename(trash)
        await asyncio.to_thread(shutil.rmtree, trash, ignore_errors=True)

    async def _after_reboot(self) -> None:
        """Nothing of it runs any more; a result that was on disk is still delivered."""
        job = disk.read(JobRecord.path(self.folder), JobRecord)
        known = job is not None and (job.phase is Phase.ENDED or (self.folder / "exit.json").exists())
        if not known and self.record.status is not TaskStatus.TERMINATED:
            await self._ended(JobReason.EXECUTOR_ERROR, "The host restarted, and the job with it.")
        await self._save(boot=identity.boot_id())
        if self.record.status is not TaskStatus.TERMINATED:
            await self._live(None)
        elif job is not None:
            await self._zygote.start_runner(self.folder)

    async def _ended(self, reason: str, message: str) -> None:
        await self._save(status=TaskStatus.TERMINATED, termination_reason=reason, termination_message=message)

    async def _call(self, method: str, target: str, content: bytes, deadline: float) -> bytes:
        return await http.call(self.folder / "runner.sock", self._instance, method, target, content, deadline)

    def _runner(self) -> Process | None:
        return disk.read(self.folder / "runner.json", Process)

    def _pulled(self, progress: PullProgress) -> None:
        self._progress = progress

    async def _leave(self, task: asyncio.Task[None] | None) -> None:
        """Cancel a task of ours and wait until it is over."""
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _save(self, **changes: object) -> None:
        record = self.record.model_copy(update=changes)
        disk.write(self.folder / "task.json", record)
        self.record = record
        async with self._changed:
            self._changed.notify_all()
