"""The log: the bytes the job wrote, in order, each once, whatever happens to whoever copies them."""

from __future__ import annotations

import asyncio
import time
from base64 import b64decode
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import text

from activities import reading
from activities.bell import LogBell
from activities.reading import Reading
from perdure.model.api import LogPage, LogQuery
from perdure.model.messages import JobStep
from perdure.model.statuses import JobReason
from perdure.store import jobs
from tests.activities.bench import Bench
from tests.support.waiting import eventually

COUNT = 400_000
SEQUENCE = b"".join(b"%d\n" % number for number in range(1, COUNT + 1))
"""2.7 MB: several pages."""


async def test_a_long_log_is_copied_byte_for_byte(bench: Bench) -> None:
    step = await bench.running(await bench.instance(), f"seq 1 {COUNT}")
    assert (await bench.watch(step)).reason is JobReason.DONE_BY_RUNNER
    assert await bench.log(step) == SEQUENCE


async def test_a_log_need_not_be_text(bench: Bench) -> None:
    step = await bench.running(await bench.instance(), r"printf 'a\000\377\r50%%\r100%%\n\303'; printf '\251'")
    assert (await bench.watch(step)).reason is JobReason.DONE_BY_RUNNER
    assert await bench.log(step) == b"a\0\xff\r50%\r100%\n\xc3\xa9"


async def test_a_worker_that_dies_between_write_and_commit_loses_and_doubles_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = await bench.running(await bench.instance(), f"seq 1 {COUNT}")
    commit, commits = jobs.commit_log, 0

    async def dies_at_first(*args: Any, **kwargs: Any) -> int:
        nonlocal commits
        commits += 1
        if commits == 1:
            raise RuntimeError("the worker is gone")
        return await commit(*args, **kwargs)

    monkeypatch.setattr(jobs, "commit_log", dies_at_first)
    with pytest.raises(RuntimeError, match="the worker is gone"):
        await bench.watch(step)
    assert (await bench.row(step)).log_bytes == 0
    assert (await bench.watch(step)).reason is JobReason.DONE_BY_RUNNER
    assert await bench.log(step) == SEQUENCE


async def test_two_watches_of_one_job_store_its_log_once(bench: Bench) -> None:
    step = await bench.running(await bench.instance(), f"seq 1 {COUNT}; sleep 0.2; echo end")
    for outcome in await asyncio.gather(bench.watch(step), bench.watch(step)):
        assert outcome.reason is JobReason.DONE_BY_RUNNER
    assert await bench.log(step) == SEQUENCE + b"end\n"


async def test_a_watch_that_is_cancelled_leaves_the_list(bench: Bench) -> None:
    step = await bench.running(await bench.instance(), "sleep 60")
    watching = asyncio.create_task(bench.watch(step))
    await eventually(lambda: _watched(bench, step))
    watching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watching
    assert not await _watched(bench, step)


async def test_a_reader_is_woken_by_the_line_it_waits_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LogBell, "look_every", 3600.0)
    monkeypatch.setattr(reading, "LONGEST_WAIT", 3600.0)
    step = await bench.running(await bench.instance(), "sleep 1; echo hello; sleep 60")
    watching = asyncio.create_task(bench.watch(step))
    begun = time.monotonic()
    page = await _read(bench, step, wait=3600.0)
    watching.cancel()
    assert b64decode(page.data) == b"hello\n"
    assert not page.complete
    assert time.monotonic() - begun < 600, "it was the end of its wait that woke it"


async def test_a_reader_looks_for_itself_while_nobody_rings(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    async def deaf(self: LogBell) -> None:
        raise OSError("no connection")

    monkeypatch.setattr(LogBell, "_listen_once", deaf)
    monkeypatch.setattr(reading, "LONGEST_WAIT", 3600.0)
    step = await bench.running(await bench.instance(), "sleep 0.5; echo hello; sleep 60")
    watching = asyncio.create_task(bench.watch(step))
    page = await _read(bench, step, wait=120.0)
    watching.cancel()
    assert b64decode(page.data) == b"hello\n"


async def test_a_reader_follows_to_the_end(bench: Bench) -> None:
    step = await bench.running(await bench.instance(), f"seq 1 {COUNT}; sleep 0.3; echo end")
    watching = asyncio.create_task(bench.watch(step))
    read, page = b"", LogPage(offset=0, next_offset=0)
    while not page.complete:
        page = await _read(bench, step, offset=page.next_offset, wait=10.0)
        read += b64decode(page.data)
    await watching
    assert read == SEQUENCE + b"end\n"


async def test_a_reader_beside_the_store_is_only_told_how_far_it_goes(bench: Bench) -> None:
    step = await bench.running(await bench.instance(), "echo hello")
    await bench.watch(step)
    page = await _read(bench, step, inline=False)
    assert (page.data, page.next_offset, page.complete) == ("", 6, True)
    assert await bench.world.blobs.read_log(page.key, 0, page.next_offset) == b"hello\n"


async def test_a_reader_waits_no_longer_than_asked(bench: Bench) -> None:
    step = await bench.job(await bench.instance(), "true")
    begun = time.monotonic()
    page = await _read(bench, step, wait=0.3)
    assert 0.25 < time.monotonic() - begun < 60
    assert (page.next_offset, page.complete) == (0, False)


async def test_the_log_of_no_job_is_not_found(bench: Bench) -> None:
    with pytest.raises(Exception, match="no job") as caught:
        await bench.call(Reading(bench.world).read_log, LogQuery(job_id=uuid4()))
    assert getattr(caught.value, "type", "") == "not-found"
    assert getattr(caught.value, "non_retryable", False)


async def _read(bench: Bench, step: JobStep, **query: Any) -> LogPage:
    return await bench.call(Reading(bench.world).read_log, LogQuery(job_id=step.key.job_id, **query))


async def _watched(bench: Bench, step: JobStep) -> bool:
    async with bench.world.database.transaction() as tx:
        query = text("SELECT count(*) FROM watches WHERE job_id = :id")
        return (await tx.execute(query, {"id": step.key.job_id})).scalar_one() == 1
