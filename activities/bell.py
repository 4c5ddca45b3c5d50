"""Rings when a job's log has grown, whichever worker stored the new bytes: one Postgres listener a process."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import asyncpg
from sqlalchemy import make_url

from perdure.store.jobs import LOG_CHANNEL

LINGER = 30.0
"""Seconds that the connection outlives the last reader: a page of a log comes right after the one before."""

RECONNECT = 1.0


class LogBell:
    """The connection is opened for the first reader and closed some time after the last. Notifications may be lost
    with it, so that readers look for themselves too, every ``look_every`` seconds."""

    def __init__(self, database_url: str):
        self._url = make_url(database_url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._readers: dict[UUID, list[asyncio.Event]] = defaultdict(list)
        self._listening: asyncio.Task[None] | None = None
        self._connected = False

    @property
    def look_every(self) -> float:
        return 2.0 if self._connected else 0.2

    @contextmanager
    def of(self, job_id: UUID) -> Iterator[asyncio.Event]:
        """An event that is set whenever the log of the job grows, while the block runs."""
        if self._listening is None or self._listening.done():
            self._listening = asyncio.create_task(self._listen())
        rung = asyncio.Event()
        self._readers[job_id].append(rung)
        try:
            yield rung
        finally:
            self._readers[job_id].remove(rung)
            if not self._readers[job_id]:
                del self._readers[job_id]

    async def _listen(self) -> None:
        while self._readers:
            try:
                await self._listen_once()
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError):
                # Postgres is away. Readers look for themselves meanwhile, and report it if it stays away.
                await asyncio.sleep(RECONNECT)

    async def _listen_once(self) -> None:
        connection = await asyncpg.connect(self._url, timeout=10)
        lost = asyncio.Event()
        try:
            connection.add_termination_listener(lambda _: lost.set())
            await connection.add_listener(LOG_CHANNEL, self._ring)
            self._connected = True
            self._ring_all()
            while self._readers and not lost.is_set():
                try:
                    await asyncio.wait_for(lost.wait(), LINGER)
                except TimeoutError:
                    continue
        finally:
            self._connected = False
            await connection.close(timeout=1)

    def _ring(self, _connection: object, _pid: int, _channel: str, job_id: object) -> None:
        for rung in self._readers.get(UUID(str(job_id)), ()):
            rung.set()

    def _ring_all(self) -> None:
        """What was stored before we listened."""
        for readers in self._readers.values():
            for rung in readers:
                rung.set()
