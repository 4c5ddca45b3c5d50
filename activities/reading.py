"""Reading a job's log, as far as Postgres says that it is stored."""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode

from temporalio import activity

from activities.bell import LogBell
from activities.contact import heartbeats
from activities.errors import translated
from activities.world import World
from perdure.model.api import READ_LOG, LogPage, LogQuery
from perdure.model.ids import log_key
from perdure.store import jobs
from perdure.store.jobs import JobContext

LONGEST_PAGE = 1_000_000
"""Bytes of one page: what may travel through Temporal, with base64 about 1.3 MB of its 2 MB."""

LONGEST_WAIT = 20.0


class Reading:
    def __init__(self, world: World):
        self.world = world
        self.bell = LogBell(world.database.url)

    @activity.defn(name=READ_LOG.name)
    @translated
    async def read_log(self, query: LogQuery) -> LogPage:
        """Bytes from ``offset``; waits for the first one if there is none yet and the log is not complete.

        Raises:
            NotFound: no such job, or its log is no longer kept.
        """
        query = query.model_copy(update={"offset": max(query.offset, 0)})
        async with heartbeats(self.world.timing.heartbeat / 3):
            job = await self._grown(query)
        end = min(job.log_bytes, query.offset + min(query.limit, LONGEST_PAGE))
        key, data = log_key(query.job_id), b""
        if not query.inline:
            end = max(job.log_bytes, query.offset)
        elif end > query.offset:
            data = await self.world.blobs.read_log(key, query.offset, end - query.offset)
            end = query.offset + len(data)
        end = max(end, query.offset)
        return LogPage(
            offset=query.offset,
            next_offset=end,
            data=b64encode(data).decode(),
            key=key,
            complete=job.log_complete and end >= job.log_bytes,
        )

    async def _grown(self, query: LogQuery) -> JobContext:
        """The job once its log goes beyond the offset, is complete, or the wait is over."""
        until = time.monotonic() + min(query.wait, LONGEST_WAIT)
        with self.bell.of(query.job_id) as rung:
            while True:
                rung.clear()
                async with self.world.database.transaction() as tx:
                    job = await jobs.load(tx, query.job_id)
                left = until - time.monotonic()
                if job.log_bytes > query.offset or job.log_complete or left <= 0:
                    return job
                try:
                    await asyncio.wait_for(rung.wait(), min(left, self.bell.look_every))
                except TimeoutError:
                    continue
