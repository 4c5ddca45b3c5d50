"""Where a soak happens: an embedded stack of its own, the clients that use it, and who can be killed on it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
from temporalio.service import RPCError

from perdure.agents import disk
from perdure.agents.identity import Process
from perdure.backends.local_shims import Folder, folders
from perdure.client import PerdureClient
from perdure.client.connection import find_temporal
from perdure.model.errors import ControlPlaneError
from perdure.stack.processes import written_in
from tests.chaos.jobs import BACKOFF
from tests.chaos.plan import Part
from tests.support.stack import Stack
from tests.support.waiting import until

T = TypeVar("T")

PROJECT = "main"
TIMING = {"retry_backoff": [BACKOFF], "stop_grace": 2.0, "abort_bound": 10.0, "sweep_grace": 10.0}
"""Shorter pauses, so that more happens in the time; what notices a fault keeps the numbers that users have."""

AGAIN_AFTER = 0.3
"""Seconds between two tries of a client whose server was just killed."""

ANSWER_WITHIN = 30.0
"""Seconds for one try of a call."""

PATIENCE = 300.0
"""Seconds until what must come back counts as gone: far beyond what a loaded machine needs."""


_AWAY = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)
"""What asyncpg raises when its server goes away, the last one in the middle of a query."""


class NotBack(AssertionError):
    """Something that was killed, or a call that was made, is still not there after ``PATIENCE``."""


@dataclass(frozen=True)
class Victim:
    """A process that may be killed, and how its successor is known."""

    who: str
    process: Process
    successor: Callable[[], Process | None]
    """The process in its place, once that does its work."""

    needed: Callable[[], bool]
    """Whether there is to be one: a task may be over, an instance may be gone."""


class Place:
    def __init__(self, stack: Stack):
        self.stack = stack
        self.records = stack.home.parent / "starts"
        self.repeated = 0
        """Calls that clients had to make again."""

        self._client: PerdureClient | None = None
        self._database: asyncpg.Connection | None = None

    def prepare(self) -> None:
        """Jobs run as somebody else, and may write down what they do."""
        self.stack.home.parent.chmod(0o755)
        self.records.mkdir()

    def folder_of(self, name: str) -> Path:
        """Where the starts of a run are written."""
        folder = self.records / name
        if not folder.exists():
            folder.mkdir()
            folder.chmod(0o777)
        return folder

    # --- clients --------------------------------------------------------------------------------------------------

    async def insist(self, call: Callable[[PerdureClient], Awaitable[T]]) -> T:
        """A client's call, made again for as long as the control plane is away.

        Raises:
            NotBack
        """
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return await asyncio.wait_for(call(await self._connected()), ANSWER_WITHIN)
            except (ControlPlaneError, RPCError, TimeoutError) as error:
                if time.monotonic() > until:
                    raise NotBack(f"a client's call fails for {PATIENCE:.0f} s: {error!r}") from error
                self.repeated += 1
                self._client = None
                await asyncio.sleep(AGAIN_AFTER)

    async def _connected(self) -> PerdureClient:
        if self._client is None:
            place = find_temporal(self.stack.environ)
            self._client = await PerdureClient.connect(place, environ=self.stack.environ)
        return self._client

    async def rows(self, query: str) -> list[dict[str, Any]]:
        """Of Postgres itself, past every worker.

        Raises:
            OSError: it is away.
        """
        try:
            database = self._database
            if database is None or database.is_closed():
                database = self._database = await asyncpg.connect(self.stack.described["database_url"], timeout=10)
            return [dict(row) for row in await database.fetch(query, timeout=10)]
        except BaseException as error:
            database, self._database = self._database, None
            if database is not None:
                database.terminate()
            if isinstance(error, _AWAY):
                raise ConnectionError(f"Postgres does not answer: {error!r}") from error
            raise

    # --- who lives ------------------------------------------------------------------------------------------------

    def is_whole(self) -> bool:
        """Whether every part of the stack is ready."""
        with contextlib.suppress(OSError):
            return self._supervisor().alive and self.stack.is_up()
        return False

    async def whole(self) -> None:
        """Until it is.

        Raises:
            NotBack
        """
        until = time.monotonic() + PATIENCE
        while not self.is_whole():
            if time.monotonic() > until:
                raise NotBack(f"not every part is ready after {PATIENCE:.0f} s: {self._parts()}")
            await asyncio.sleep(0.05)

    def victim(self, part: Part, pick: int) -> Victim | None:
        """One that lives now; None if there is none."""
        found = [self._of_stack(part)] if part.of_the_stack else self._agents(part)
        alive = [victim for victim in found if victim is not None]
        return alive[pick % len(alive)] if alive else None

    def fall(self, *, hard: bool) -> None:
        """Kill the supervisor, all that it keeps and the shims; or tell it to stop. Then start it again.

        Raises:
            AssertionError, subprocess.TimeoutExpired: it does not start.
        """
        supervisor = self._supervisor()
        supervisor.kill(signal.SIGKILL if hard else signal.SIGTERM)
        if hard:
            parts = [self._of_stack(part) for part in Part if part.of_the_stack]
            for victim in filter(None, [*parts, *self._agents(Part.SHIM)]):
                victim.process.kill()
        until(lambda: not supervisor.alive, "the supervisor to end")
        self.stack.up()

    def agents_left(self) -> list[str]:
        """Runners and keepers: none, when no run is active."""
        return [
            f"{it.pid} lives ({word})"
            for word in ("perdure.agents.runner", "keeper")
            for it in self.stack.agents(word)
        ]

    def shims(self) -> int:
        return sum(folder.shim() is not None for folder in folders(self.stack.home))

    def _of_stack(self, part: Part) -> Victim | None:
        def successor() -> Process | None:
            ready = {it["name"] for it in self._parts() if it["state"] == "ready"}
            return written_in(path) if part.value in ready else None

        path = self.stack.home / "run" / f"{part.value}.pid"
        process = written_in(path)
        return process and Victim(part.value, process, successor, lambda: True)

    def _agents(self, part: Part) -> list[Victim | None]:
        every = folders(self.stack.home)
        if part is Part.SHIM:
            return [_shim(folder) for folder in every]
        return [_runner(folder, task) for folder in every for task in sorted(folder.path.glob("tasks/*"))]

    def _supervisor(self) -> Process:
        return Process.model_validate(self.stack.described["supervisor"])

    def _parts(self) -> list[dict[str, Any]]:
        with contextlib.suppress(OSError, json.JSONDecodeError):
            return self.stack.described["parts"]
        return []


def _shim(folder: Folder) -> Victim | None:
    process = folder.shim()
    needed = lambda: folder.description.exists() and not folder.leaving.exists()  # noqa: E731
    return process and Victim(f"shim of {folder.path.name}", process, folder.shim, needed)


def _runner(folder: Folder, task: Path) -> Victim | None:
    def living() -> Process | None:
        written = disk.read(task / "runner.json", Process)
        return written if written is not None and written.alive else None

    process = living()
    return process and Victim(f"runner of {task.name}", process, living, task.exists)


def send(victim: Victim, *, hard: bool) -> None:
    victim.process.kill(signal.SIGKILL if hard else signal.SIGTERM)
