"""One task's life on its instance: prepare, start the runner, keep it running, end it, remove it.

Each step is on disk before it is taken, and each may be taken again. Ending is one task of asyncio that nobody's
impatience interrupts: a caller that hangs up, or comes twice, changes nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
from collections.abc import Sequence
from pathlib import Path

from starlette.exceptions import HTTPException

from perdure.agents import disk, identity, remains
from perdure.agents.execution import ExecutionError
from perdure.agents.executors import container, executor, preparation
from perdure.agents.instance import Instance
from perdure.agents.protocol import PullProgress, TaskConfig, TaskInfo, TaskStatus, Terminate
from perdure.agents.runner.record import JobRecord, Phase
from perdure.agents.shim.record import TaskRecord
from perdure.agents.shim.runner import Runner
from perdure.agents.shim.zygote import Zygote
from perdure.model.statuses import JobReason

_LOG = logging.getLogger("perdure.shim")


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
        self._file = disk.Record(folder / "task.json")
        self._instance = instance
        self._shim_folder = shim_folder
        self._runner = Runner(folder, instance, zygote)
        self._progress: PullProgress | None = None
        self._changed = asyncio.Condition()
        self._life: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._removing: asyncio.Task[None] | None = None

    def info(self) -> TaskInfo:
        """As it is now. A terminated task that had a job keeps its runner, with the end of the log."""
        record = self.record
        over = record.status is TaskStatus.TERMINATED
        has_runner = record.status is TaskStatus.RUNNING or (over and self._job() is not None)
        container_name, container_id = container(self.config, self.folder)
        return TaskInfo(
            id=self.config.id,
            status=record.status,
            termination_reason=record.termination_reason,
            termination_message=record.termination_message,
            ports=record.ports,
            image_pull_progress=self._progress,
            executor=executor(self.config),
            container_name=container_name,
            container_id=container_id,
            runner_socket=str(self._runner.socket) if has_runner else "",
        )

    async def changed(self, seen: str, wait: float) -> TaskInfo:
        """The task as soon as its status is another than ``seen``, at the latest after ``wait`` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait), self._changed:
                await self._changed.wait_for(lambda: self.record.status.value != seen)
        return self.info()

    def live(self, older: Sequence[Task]) -> None:
        """Go on from where the record says. ``older`` tasks are ended before anything is acquired."""
        over = self.record.status is TaskStatus.TERMINATED
        if self.record.boot != identity.boot_id():
            self._life = asyncio.create_task(self._after_reboot())
        elif over:
            self._life = asyncio.create_task(self._serve_result())
        elif self.record.terminating is not None:
            self._ending = asyncio.create_task(self._end(self.record.terminating))
        else:
            self._life = asyncio.create_task(self._live(older))

    async def terminate(self, wish: Terminate) -> TaskInfo:
        """End it, from whatever state; returns when it has ended. A second wish can only shorten the grace."""
        if self.record.status is not TaskStatus.TERMINATED:
            if self._ending is None or self._ending.done():
                await self._save(terminating=wish)
                self._ending = asyncio.create_task(self._end(wish))
            elif self.record.terminating is not None and wish.timeout < self.record.terminating.timeout:
                await self._save(terminating=wish)
                with contextlib.suppress(OSError, ValueError, TimeoutError):
                    await self._runner.stop(wish.timeout, wish.termination_reason)
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
            raise HTTPException(500, f"{self.config.name} could not be removed: {error}") from error

    async def vanish(self) -> None:
        """End it without its files, which somebody deleted, and delete what it has elsewhere."""
        await _leave(self._life)
        try:
            await self._runner.settled()
            await asyncio.to_thread(remains.end_tasks, {self.config.id})
            await preparation(self.config, self._instance, self._shim_folder).remove(self.config, self.folder)
        except (OSError, ExecutionError):
            _LOG.exception("task %s: something of it is left", self.config.id)

    async def _live(self, older: Sequence[Task]) -> None:
        try:
            await asyncio.gather(*(task.terminate(_replaced_by(self.config.submission)) for task in older))
            if self.record.status is not TaskStatus.RUNNING:
                await self._prepare()
                await self._runner.begin()
                await self._save(status=TaskStatus.RUNNING)
        except ExecutionError as error:
            await self._ended(error.reason, error.message)
        except OSError as error:
            _LOG.exception("task %s could not be prepared", self.config.id)
            await self._ended(JobReason.EXECUTOR_ERROR, f"The host could not prepare the task: {error}")
        except Exception as error:  # noqa: BLE001  nothing runs yet: better ended and told than left waiting
            _LOG.critical("task %s could not be prepared, by a fault of ours", self.config.id, exc_info=error)
            await self._ended(JobReason.EXECUTOR_ERROR, f"The shim failed while it prepared the task: {error!r}")
        else:
            await self._runner.keep()

    async def _prepare(self) -> None:
        await self._save(status=TaskStatus.PREPARING)
        half = preparation(self.config, self._instance, self._shim_folder)
        if self.config.image_name:
            await self._save(status=TaskStatus.PULLING)
        ports = await half.prepare(self.config, self.folder, self._pulled)
        await self._save(status=TaskStatus.CREATING, ports=ports)

    async def _end(self, wish: Terminate) -> None:
        await _leave(self._life)
        try:
            if self._job_may_run():
                await self._runner.stop(wish.timeout, wish.termination_reason)
                await self._runner.until_ended()
        except (OSError, ValueError, TimeoutError) as error:
            _LOG.warning("task %s: its runner does not end it (%r): killed", self.config.id, error)
            try:
                await self._kill()
            except (OSError, ExecutionError):
                _LOG.exception("task %s: something of it is left, for its removal", self.config.id)
        await self._ended(wish.termination_reason, wish.termination_message)
        self._life = asyncio.create_task(self._serve_result())

    async def _serve_result(self) -> None:
        """Keep a runner for who has not read the end of the log yet."""
        if self._job() is not None:
            await self._runner.keep()

    async def _kill(self) -> None:
        """The runner first, which might start something; then everything of the job."""
        await self._runner.kill()
        await preparation(self.config, self._instance, self._shim_folder).remove(self.config, self.folder)

    async def _remove(self) -> None:
        await _leave(self._life)
        gone = self.folder.with_name(f".{self.config.id}")  # which no shim takes for a task
        if self.folder.exists():
            await self._kill()
            self.folder.rename(gone)
        if gone.exists():
            await asyncio.to_thread(shutil.rmtree, gone)

    async def _after_reboot(self) -> None:
        """Nothing of it runs any more; a result that was on disk is still delivered."""
        if self.record.status is not TaskStatus.TERMINATED and not await self._result_is_kept():
            await self._ended(JobReason.EXECUTOR_ERROR, "The host restarted, and the job was lost with it.")
        await self._save(boot=identity.boot_id())
        self.live([])

    async def _result_is_kept(self) -> bool:
        job = self._job()
        if job is None or job.phase is Phase.ENDED:
            return job is not None
        half = preparation(self.config, self._instance, self._shim_folder)
        return await half.has_result(self.config, self.folder)

    async def _ended(self, reason: str, message: str) -> None:
        await self._save(status=TaskStatus.TERMINATED, termination_reason=reason, termination_message=message)

    def _job(self) -> JobRecord | None:
        return disk.read(JobRecord.path(self.folder), JobRecord)

    def _job_may_run(self) -> bool:
        """Whether there is a job that is not over, or a runner that may still be given one."""
        job = self._job()
        return self._runner.alive if job is None else job.phase is not Phase.ENDED

    def _pulled(self, progress: PullProgress) -> None:
        self._progress = progress

    async def _save(self, **changes: object) -> None:
        record = self.record.model_copy(update=changes)
        ends = record.terminating is not None or record.status is TaskStatus.TERMINATED
        self._file.write(record, must=not ends)
        self.record = record
        async with self._changed:
            self._changed.notify_all()


def _replaced_by(submission: int) -> Terminate:
    return Terminate(
        termination_reason=JobReason.TERMINATED_BY_SERVER,
        termination_message=f"Submission {submission} took its place.",
        timeout=0,
    )


async def _leave(task: asyncio.Task[None] | None) -> None:
    """Cancel a task of ours and wait until it is over."""
    if task is not None:
        task.cancel()
        await asyncio.wait([task])
