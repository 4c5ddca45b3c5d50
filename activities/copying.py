"""A job's log on its way from the runner to the blob store: the same bytes at the same offsets.

The offset of record is in Postgres. Bytes go to the blob store first and are committed after, so a copier that dies
in between has lost nothing: the next one writes the same bytes at the same place. A copier that finds another one
ahead of it goes on from there.
"""

from __future__ import annotations

import asyncio
from uuid import UUID

from activities.jobs import BEFORE_RUNNING
from activities.world import World
from perdure.agents.client import LogPage, RunnerClient
from perdure.agents.protocol import RunnerState
from perdure.model.ids import log_key
from perdure.store import jobs

COMMIT_EVERY = 8 * 1024 * 1024
"""Bytes between two commits while there is more to fetch. A log that is caught up with is committed at once."""


class LogCopy:
    """One copier of one job's log. Holds two pages (2 MiB) at most: the next is fetched while one is stored."""

    def __init__(self, world: World, job_id: UUID, record: int):
        self.world = world
        self.job_id = job_id
        self.key = log_key(job_id)
        self.written = record
        """What is in the blob store."""
        self.length: int | None = None
        """What the runner said there is; None before its first word."""
        self.state: str = RunnerState.RUNNING
        """Of the runner, with its last page."""
        self._record = record
        self._ahead: asyncio.Task[LogPage] | None = None

    @property
    def missing(self) -> int | None:
        """Bytes that the runner had and the store has not, as far as is known."""
        return None if self.length is None else max(self.length - self.written, 0)

    def resume(self, record: int) -> None:
        """Go on from the offset of record."""
        self._drop_ahead()
        self.written = self._record = record

    async def page(self, runner: RunnerClient, wait: float) -> bool:
        """Copy the next page; waits up to ``wait`` seconds for its first byte. True: that was all, for good.

        After an error, ``resume`` before the next page.

        Raises:
            AgentUnreachable, AgentRefused
        """
        try:
            return await self._page(runner, wait)
        except BaseException:
            self._drop_ahead()
            raise

    async def _page(self, runner: RunnerClient, wait: float) -> bool:
        page = await (self._ahead or runner.logs(self.written, wait=wait))
        self._ahead = None
        self.length, self.state = page.length, page.state
        end = self.written + len(page.content)
        if page.content and end < page.length:
            self._ahead = asyncio.create_task(runner.logs(end))
        if page.content:
            await self.world.blobs.write_log(self.key, self.written, page.content)
            self.written = end
        caught_up = self.written >= page.length
        finished = page.complete and caught_up
        if finished or (caught_up and self.written > self._record) or self.written - self._record >= COMMIT_EVERY:
            finished = await self._commit(finished) and finished
        return finished

    async def _commit(self, complete: bool) -> bool:
        """False: another copier was elsewhere; we are there now."""
        async with self.world.database.transaction() as tx:
            record = await jobs.commit_log(
                tx, self.job_id, expected=self._record, new=self.written, complete=complete
            )
        if record != self.written:
            self.resume(record)
            return False
        self._record = record
        return True

    def _drop_ahead(self) -> None:
        if self._ahead is not None:
            self._ahead.cancel()
            self._ahead = None


async def close_log(world: World, job_id: UUID, missing: int | None, why: str) -> None:
    """Nothing more will come: a log that is not complete is made so, with a last line of ours that says what is
    missing. A job that never ran has an empty log, and nothing is missing. Safe to repeat."""
    while True:
        async with world.database.transaction() as tx:
            job = await jobs.load(tx, job_id)
        if job.log_complete:
            return
        note = b"" if missing == 0 or job.status in BEFORE_RUNNING else _note(missing, why, job.log_bytes)
        if note:
            await world.blobs.write_log(log_key(job_id), job.log_bytes, note)
        end = job.log_bytes + len(note)
        async with world.database.transaction() as tx:
            if await jobs.commit_log(tx, job_id, expected=job.log_bytes, new=end, complete=True) == end:
                return


def _note(missing: int | None, why: str, offset: int) -> bytes:
    what = "the rest of this log" if missing is None else f"{missing} bytes of this log"
    return f"{chr(10) if offset else ''}[perdure] {what} could not be saved: {why}\n".encode()
