"""Following a job's log: bytes from the first one, across attempts, each page waited for by the worker.

A log is bytes at an offset. A client on the worker's host reads them from the blob store's folder itself, and asks
the worker only how far they go; another gets them in the answer. ``Hello.blobs`` names the folder, and a file
``installation`` in it says that it is the same one.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from perdure.blobs.folder import FolderBlobs
from perdure.client.places import blobs_folder
from perdure.model.api import JobRow, LogPage, LogQuery, RunRow
from perdure.model.errors import NotFound
from perdure.model.statuses import JobStatus, RunStatus

if TYPE_CHECKING:
    from perdure.client.client import PerdureClient

PAGE_WAIT = 15.0
"""Seconds the worker waits for a page's first byte."""

LOOK_EVERY = 0.25
"""Seconds between two looks for an attempt that has not begun; grows to ``LOOK_EVERY_MOST``."""

LOOK_EVERY_MOST = 2.0

PIECE = 1024**2
"""Bytes of one read of the folder."""


class NoJob(NotFound):
    """The run has no such job or attempt."""


class NotStarted(NoJob):
    """The job has not begun, or the run ended before it could."""


@dataclass(frozen=True)
class LogPiece:
    """Some bytes of one attempt's output; the first piece of an attempt may be empty."""

    job: JobRow
    offset: int
    data: bytes
    complete: bool = False
    """Nothing of this attempt follows."""

    missing: bool = False
    """The attempt has ended, but not all that it printed could be fetched."""


async def follow(
    client: PerdureClient,
    project: str,
    name: str,
    *,
    run_id: UUID | None,
    slot: tuple[int, int],
    attempt: int | None,
    wait: bool,
) -> AsyncIterator[LogPiece]:
    """See ``PerdureClient.follow_logs``.

    Raises:
        NotFound: no such run; ``NoJob``, no such job or attempt; ``NotStarted``, none at all yet.
    """
    hello, run = await asyncio.gather(client.hello(), client.get_run(project, name, run_id))
    ended = asyncio.create_task(client.closed(project, run.name, run.run_id))
    ended.add_done_callback(lambda task: task.cancelled() or task.exception())
    reader = _Reader(client, blobs_folder(hello), run, ended if wait else None)
    try:
        job = _newest(run, slot, attempt)
        if job is None and not (wait and _may_come(run, slot)):
            raise _nothing(run, slot, attempt)
        while True:
            if job is None:
                run, job = await _next_attempt(client, run, slot, attempt)
            if job is None:
                raise _nothing(run, slot, attempt)
            async for piece in reader.read(job):
                yield piece
            if attempt is not None or not wait:
                return
            after = job.submission
            run, job = await _next_attempt(client, run, slot, None, after)
            if job is None:
                return
    finally:
        ended.cancel()


def _newest(run: RunRow, slot: tuple[int, int], attempt: int | None) -> JobRow | None:
    jobs = [job for job in run.jobs if (job.replica, job.node) == slot]
    if attempt is not None:
        jobs = [job for job in jobs if job.submission == attempt]
    return max(jobs, key=lambda job: job.submission, default=None)


def _may_come(run: RunRow, slot: tuple[int, int]) -> bool:
    """Whether a job that is not there may yet begin: another node may come first (``startup_order``)."""
    return run.has(*slot) and not RunStatus(run.status).final


async def _next_attempt(
    client: PerdureClient, run: RunRow, slot: tuple[int, int], attempt: int | None, after: int = -1
) -> tuple[RunRow, JobRow | None]:
    """The attempt that begins next, or None when the run has ended without one."""
    pause = LOOK_EVERY
    while True:
        run = await client.get_run(run.project, run_id=run.run_id)
        job = _newest(run, slot, attempt)
        if job is not None and job.submission > after:
            later = [
                other for other in run.jobs if (other.replica, other.node) == slot and other.submission > after
            ]
            return run, job if attempt is not None else min(later, key=lambda other: other.submission)
        if RunStatus(run.status).final:
            return run, None
        await asyncio.sleep(pause)
        pause = min(pause * 1.2, LOOK_EVERY_MOST)


def _nothing(run: RunRow, slot: tuple[int, int], attempt: int | None) -> NoJob:
    replica, node = slot
    attempts = sorted(job.submission for job in run.jobs if (job.replica, job.node) == slot)
    if attempts:
        return NoJob(
            f"job {node} of replica {replica} of run {run.name} has no attempt {attempt}",
            hint=f"it has {', '.join(map(str, attempts))}",
        )
    if not run.has(*slot):
        return NoJob(
            f"run {run.name} has no job {node} of replica {replica}",
            hint=f"its last one is job {run.nodes - 1} of replica {run.replicas - 1}",
        )
    what = f"job {node}" if run.jobs else "a job"
    return NotStarted(f"run {run.name} has not started {what}" + (f": {run.message}" if run.message else ""))


class _Reader:
    """Reads one attempt after the other of one run."""

    def __init__(self, client: PerdureClient, folder: Path | None, run: RunRow, ended: asyncio.Future[None] | None):
        """``ended`` is done when the run is over; None: read only what there is."""
        self.client = client
        self.store = FolderBlobs(folder) if folder is not None else None
        self.run = run
        self.ended = ended

    async def read(self, job: JobRow) -> AsyncIterator[LogPiece]:
        """One attempt's output, to its end."""
        offset = 0
        over = JobStatus(job.status).final
        yield LogPiece(job, 0, b"")
        while True:
            page = await self._page(job, offset, over)
            async for data in self._bytes(page):
                yield LogPiece(job, offset, data)
                offset += len(data)
            if page.complete and offset >= page.next_offset:
                yield LogPiece(job, offset, b"", complete=True)
                return
            if page.next_offset > page.offset:
                continue
            if over:
                yield LogPiece(job, offset, b"", complete=True, missing=job.started_at is not None)
                return
            if self.ended is None:
                return
            run_over = self.ended.done()
            job = await self._again(job)
            over = run_over or JobStatus(job.status).final

    async def _page(self, job: JobRow, offset: int, over: bool) -> LogPage:
        """The next page; waits for its first byte unless nobody writes any more."""
        wait = 0.0 if over or self.ended is None or self.ended.done() else PAGE_WAIT
        query = LogQuery(job_id=job.job_id, offset=offset, wait=wait, inline=self.store is None)
        if self.ended is not None and self.ended.done():
            self.ended.result()
        if not wait or self.ended is None:
            return await self.client.read_log(query)
        asked = asyncio.ensure_future(self.client.read_log(query))
        try:
            await asyncio.wait([asked, self.ended], return_when=asyncio.FIRST_COMPLETED)
            if asked.done():
                return asked.result()
        finally:
            asked.cancel()
        return await self.client.read_log(query.but(wait=0.0))

    async def _bytes(self, page: LogPage) -> AsyncIterator[bytes]:
        """Raises NotFound: the blob store no longer has what Postgres says it has."""
        if self.store is None:
            if page.data:
                yield b64decode(page.data)
            return
        offset = page.offset
        while offset < page.next_offset:
            data = await self.store.read_log(page.key, offset, min(PIECE, page.next_offset - offset))
            if not data:
                raise NotFound(f"the log of run {self.run.name} is no longer kept")
            yield data
            offset += len(data)

    async def _again(self, job: JobRow) -> JobRow:
        run = await self.client.get_run(self.run.project, run_id=self.run.run_id)
        return next((other for other in run.jobs if other.job_id == job.job_id), job)
