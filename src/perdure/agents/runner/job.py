"""One job's life: submitted, run once, stopped or ended, its result kept. Each step is on disk before it is taken.

The end is decided once: the first of *a stop was asked for* and *the process was seen to have ended* wins, so that
an end we caused is never a success.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path

from starlette.exceptions import HTTPException

from perdure.agents import disk, identity
from perdure.agents.execution import Execution, ExecutionError, Exit
from perdure.agents.protocol import JobState, RunAnswer, StopBody, SubmitBody
from perdure.agents.runner.record import JobRecord, Phase, Result
from perdure.model.statuses import JobReason

_LOG = logging.getLogger("perdure.runner")


class Job:
    """The one job of this runner."""

    def __init__(self, folder: Path, execution: Execution):
        self._folder = folder
        self._execution = execution
        self._file = disk.Record(JobRecord.path(folder))
        self.record = disk.read(JobRecord.path(folder), JobRecord) or JobRecord()
        self._changed = asyncio.Condition()
        self._life: asyncio.Task[None] | None = None
        self._answered = asyncio.Event()
        self._stop_wanted = asyncio.Event()
        self.on_change: Callable[[], None] = lambda: None

    def adopt(self) -> None:
        """Take over what an earlier runner of this task began."""
        if self.record.phase in (Phase.STARTING, Phase.RUNNING):
            if self.record.stop is not None:
                self._stop_wanted.set()
            self._begin()

    def state(self) -> JobState:
        """As it is now."""
        record, log = self.record, self._folder / "log"
        result = record.result or Result(reason="")
        return JobState(
            state=record.phase.state,
            reason=result.reason,
            message=result.message,
            exit_status=result.exit_status,
            stop_requested=record.stop is not None,
            log_length=log.stat().st_size if log.exists() else 0,
            log_complete=record.phase is Phase.ENDED,
        )

    async def changed(self, seen: str, wait: float) -> JobState:
        """The state as soon as it is another than ``seen``, at the latest after ``wait`` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait), self._changed:
                await self._changed.wait_for(lambda: self.record.phase.state.value != seen)
        return self.state()

    async def submit(self, job: SubmitBody) -> None:
        """Take the job. Again, and after it was run, is success."""
        _check_signal(job.stop_signal)
        if self.record.phase in (Phase.WAIT_SUBMIT, Phase.WAIT_RUN):
            await self._save(job=job, phase=Phase.WAIT_RUN)

    async def run(self) -> RunAnswer:
        """Start it, once, and say where it runs; an empty answer if it ended before it ran."""
        if self.record.phase is Phase.WAIT_SUBMIT:
            raise HTTPException(409, "No job has been submitted.")
        if self.record.phase is Phase.WAIT_RUN:
            assert self.record.job is not None
            missing = [
                archive.sha256 for archive in self.record.job.archives if not self.archive(archive.sha256).exists()
            ]
            if missing:
                raise HTTPException(409, f"Archives have not been uploaded: {', '.join(missing)}.")
            await self._save(phase=Phase.STARTING, started=identity.uptime(), boot=identity.boot_id())
            self._begin()
        if self.record.phase is Phase.STARTING:
            await self._answered.wait()
        return self.record.answer or RunAnswer()

    async def stop(self, wish: StopBody) -> JobState:
        """Ask it to end: SIGTERM, then SIGKILL after the grace. A later call can only shorten the grace."""
        record = self.record
        _check_signal(wish.signal)
        if record.phase in (Phase.WAIT_SUBMIT, Phase.WAIT_RUN):
            await self._save(
                stop=wish, phase=Phase.ENDED, result=Result(reason=wish.reason, message="It never ran.")
            )
        elif record.phase is not Phase.ENDED:
            stop_at = identity.uptime() + wish.grace
            if record.stop is None:
                await self._save(stop=wish, stop_at=stop_at)
            elif record.stop_at is None or stop_at < record.stop_at:
                await self._save(stop_at=stop_at)
            self._stop_wanted.set()
        return self.state()

    async def acknowledge(self) -> None:
        """The result has been recorded elsewhere."""
        if self.record.phase is not Phase.ENDED:
            raise HTTPException(409, "The job has not ended.")
        await self._save(acknowledged=True)

    def archive(self, sha256: str) -> Path:
        """Where an uploaded archive lies."""
        return self._folder / "archives" / sha256

    def _begin(self) -> None:
        self._life = asyncio.create_task(self._live())
        self._life.add_done_callback(_crash_with)

    async def _live(self) -> None:
        """From start to end. Only a fault of the host's own, or of ours, gets through as executor_error."""
        try:
            result = await self._start_and_wait()
        except ExecutionError as error:
            result = Result(reason=error.reason, message=error.message)
        except OSError as error:
            _LOG.exception("The job could not be run")
            result = Result(reason=JobReason.EXECUTOR_ERROR, message=str(error))
        await self._save(phase=Phase.ENDED, result=self._decided(result))
        self._answered.set()

    async def _start_and_wait(self) -> Result:
        job = self.record.job
        assert job is not None
        answer = await self._start(job)
        if answer is None:
            return Result(reason="")
        if self.record.phase is Phase.STARTING:
            await self._save(phase=Phase.RUNNING, answer=answer)
        self._answered.set()
        ended = asyncio.create_task(self._execution.wait())
        guards = [asyncio.create_task(self._stopped()), asyncio.create_task(self._timed(job))]
        try:
            while not ended.done():
                await asyncio.wait([ended, *guards], return_when=asyncio.FIRST_COMPLETED)
                for guard in [guard for guard in guards if guard.done()]:
                    guards.remove(guard)
                    guard.result()
            return _result(ended.result())
        finally:
            for task in (ended, *guards):
                task.cancel()

    async def _start(self, job: SubmitBody) -> RunAnswer | None:
        """None: a stop came first, and nothing of it is left."""
        starting = asyncio.create_task(self._execution.start(job))
        stopping = asyncio.create_task(self._stop_wanted.wait())
        await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if starting.done() or self.record.phase is Phase.RUNNING:
            return await starting
        starting.cancel()
        await asyncio.wait([starting])
        await self._execution.kill()
        return None

    async def _timed(self, job: SubmitBody) -> None:
        """Ask for a stop when ``max_duration`` is over, measured from the first start."""
        if job.max_duration is None:
            return
        assert self.record.started is not None
        await asyncio.sleep(max(0.0, self.record.started + job.max_duration - identity.uptime()))
        await self.stop(StopBody(grace=job.stop_grace, reason=JobReason.MAX_DURATION_EXCEEDED))

    async def _stopped(self) -> None:
        """Carry out a stop once it is asked for."""
        await self._stop_wanted.wait()
        wish = self.record.stop
        assert wish is not None
        assert self.record.job is not None
        signalling: asyncio.Task[None] | None = None
        try:
            while (left := self._grace_left()) > 0:
                self._stop_wanted.clear()
                if signalling is None:
                    signalling = asyncio.create_task(self._signal(wish.signal or self.record.job.stop_signal))
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stop_wanted.wait(), left)
        finally:
            if signalling is not None:
                signalling.cancel()
        await self._execution.kill()

    async def _signal(self, name: str) -> None:
        try:
            await self._execution.signal(name)
        except (OSError, ExecutionError):
            _LOG.exception("%s could not be sent: killed when its grace is over", name)

    def _grace_left(self) -> float:
        """Seconds. None of it: no signal is sent, it is killed at once."""
        assert self.record.stop_at is not None
        return self.record.stop_at - identity.uptime()

    def _decided(self, result: Result) -> Result:
        stop = self.record.stop
        if stop is None:
            return result
        return result.model_copy(update={"reason": stop.reason, "message": result.note})

    async def _save(self, **changes: object) -> None:
        record = self.record.model_copy(update=changes)
        begins = record.stop is None and record.phase in (Phase.WAIT_RUN, Phase.STARTING)
        self._file.write(record, durable=record.phase is Phase.ENDED, must=begins)
        self.record = record
        self.on_change()
        async with self._changed:
            self._changed.notify_all()


def _result(end: Exit) -> Result:
    if end.exit_status == 0:
        return Result(reason=JobReason.DONE_BY_RUNNER, message=end.message, exit_status=0, note=end.message)
    return Result(
        reason=JobReason.CONTAINER_EXITED_WITH_ERROR,
        message=end.message or _signal_of(end.exit_status),
        exit_status=end.exit_status,
        note=end.message,
    )


def _check_signal(name: str) -> None:
    if name and name not in signal.Signals.__members__:
        raise HTTPException(400, f"{name} is not the name of a signal, such as SIGTERM.")


def _crash_with(life: asyncio.Task[None]) -> None:
    """A fault nobody foresaw ends the runner and not the job: the next runner takes over where it stood."""
    if not life.cancelled() and (error := life.exception()) is not None:
        _LOG.critical("The runner ends itself", exc_info=error)
        os._exit(1)


def _signal_of(status: int) -> str:
    """What an exit status does not say to everybody; the status itself is told beside it."""
    if status > 128:
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(status - 128).name}"
    return ""
