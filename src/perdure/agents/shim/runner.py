"""The runner of one task, as its shim sees it: found by its process, kept alive, asked to stop, killed."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from perdure.agents import disk, http, identity
from perdure.agents.identity import Process
from perdure.agents.instance import Instance
from perdure.agents.protocol import JobState, RunnerState, StopBody
from perdure.agents.shim.zygote import RunnerNotStarted, Zygote
from perdure.model.statuses import JobReason

_LOG = logging.getLogger("perdure.shim")
_PATIENCE = 25.0
"""Seconds for the end of a job beyond its grace: a process can be long in a call of the kernel."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0
_TRIES, _TRY_WITHIN = 5, 60.0
"""Starts of a first runner, and seconds in which the last of them may begin."""

_STEADY = 10.0
"""Seconds after which a runner's death is not the next one of a row."""


class Runner:
    def __init__(self, folder: Path, instance: Instance, zygote: Zygote):
        self.socket = folder / "runner.sock"
        self._folder = folder
        self._instance = instance
        self._zygote = zygote
        self._starting: asyncio.Task[None] | None = None
        self._stop_at = 0.0

    @property
    def process(self) -> Process | None:
        """The living process, if there is one."""
        process = disk.read(self._folder / "runner.json", Process)
        return process if process is not None and process.alive else None

    @property
    def alive(self) -> bool:
        return self.process is not None

    async def ensure(self) -> None:
        """Have one that takes calls.

        Raises:
            RunnerNotStarted
        """
        await self.settled()
        if self.process is None:
            # In a task of its own: a start that nobody waits for any more is still known to who kills.
            self._starting = asyncio.create_task(self._zygote.start_runner(self._folder))
            await asyncio.shield(self._starting)

    async def begin(self) -> None:
        """Have the first one. Nothing of the user's has run yet: a start that fails is tried a few times.

        Raises:
            RunnerNotStarted: it fails again and again; with the last words of its log.
        """
        pause, begun = _FIRST_PAUSE, identity.uptime()
        for number in range(1, _TRIES + 1):
            try:
                await self.ensure()
            except RunnerNotStarted as error:
                if number == _TRIES or identity.uptime() - begun > _TRY_WITHIN:
                    raise
                _LOG.warning("%s: try %d: %s", self._folder.name, number, error)
            else:
                return
            pause = min(pause * 2, _LONGEST_PAUSE)
            await asyncio.sleep(pause)

    async def keep(self) -> None:
        """Have one, and another whenever it dies, for ever."""
        pause = _FIRST_PAUSE
        while True:
            begun = identity.uptime()
            try:
                await self.ensure()
            except OSError:
                _LOG.exception("%s: no runner could be started", self._folder.name)
            if (process := self.process) is not None:
                await process.gone()
            _LOG.warning("%s: its runner died, another is started", self._folder.name)
            steady = identity.uptime() - begun > _STEADY
            pause = _FIRST_PAUSE if steady else min(pause * 2, _LONGEST_PAUSE)
            await asyncio.sleep(pause)

    async def stop(self, grace: float, reason: str) -> None:
        """Ask for the end of the job.

        Raises:
            OSError, TimeoutError, ValueError: it does not answer as it should.
        """
        await self.ensure()
        body = StopBody(grace=grace, reason=reason or JobReason.TERMINATED_BY_SERVER)
        await self._call("POST", "/api/stop", body.model_dump_json().encode(), 5)
        self._stop_at = identity.uptime() + grace

    async def until_ended(self) -> None:
        """Until a job that was asked to stop has ended.

        Raises:
            OSError, TimeoutError, ValueError: it has not, long after its grace.
        """
        seen = ""
        while seen != RunnerState.ENDED:
            if identity.uptime() > self._stop_at + _PATIENCE:
                raise TimeoutError
            answer = await self._call("GET", f"/api/state?wait=5&seen={seen}", b"", 10)
            seen = JobState.model_validate_json(answer).state

    async def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        await self.settled()
        if (process := self.process) is not None:
            process.kill()
            await process.gone()

    async def settled(self) -> None:
        """Until a start that is under way is over."""
        if self._starting is not None:
            await asyncio.wait([self._starting])

    async def _call(self, method: str, target: str, content: bytes, deadline: float) -> bytes:
        return await http.call(self.socket, self._instance, method, target, content, deadline)
