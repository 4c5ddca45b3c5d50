"""A log is followed from its first byte to its last, once each, over attempts, whatever comes in between."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from perdure.blobs.folder import FolderBlobs
from perdure.client.logs import LogPiece, NoJob, NotStarted, follow
from perdure.model.api import Hello, JobRow, LogPage, LogQuery, RunRow
from perdure.model.ids import job_id, log_key

NOW = datetime(2026, 1, 1, tzinfo=UTC)
RUN = uuid4()
INSTALLATION = uuid4()


@dataclass
class FakeInstallation:
    """As much of a client as following needs; its jobs' logs grow when a test says so."""

    blobs: str = "/nowhere"
    jobs: list[JobRow] = field(default_factory=list)
    logs: dict[UUID, bytes] = field(default_factory=dict)
    complete: set[UUID] = field(default_factory=set)
    status: str = "running"
    nodes: int = 1
    over: asyncio.Event = field(default_factory=asyncio.Event)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    queries: list[LogQuery] = field(default_factory=list)

    async def hello(self) -> Hello:
        return Hello(version="1", installation=INSTALLATION, public_key="", blobs=self.blobs, code_limit=0)

    async def get_run(self, project: str, name: str | None = None, run_id: UUID | None = None) -> RunRow:
        return RunRow(
            run_id=RUN,
            project=project,
            name="x",
            status=self.status,
            submitted_at=NOW,
            nodes=self.nodes,
            jobs=tuple(self.jobs),
        )

    async def closed(self, project: str, name: str, run_id: UUID) -> None:
        await self.over.wait()

    async def read_log(self, query: LogQuery) -> LogPage:
        self.queries.append(query)
        async with self.changed:
            if query.wait:
                await self.changed.wait_for(
                    lambda: len(self.logs[query.job_id]) > query.offset or query.job_id in self.complete
                )
        data = self.logs[query.job_id][query.offset : query.offset + query.limit]
        return LogPage(
            offset=query.offset,
            next_offset=query.offset + len(data),
            data=b64encode(data).decode() if query.inline else "",
            key=log_key(query.job_id),
            complete=query.job_id in self.complete and query.offset + len(data) == len(self.logs[query.job_id]),
        )

    def add(self, submission: int, status: str = "running", node: int = 0) -> JobRow:
        row = JobRow(
            job_id=job_id(RUN, 0, node, submission),
            replica=0,
            node=node,
            submission=submission,
            status=status,
            started_at=NOW,
        )
        self.jobs = [job for job in self.jobs if job.job_id != row.job_id] + [row]
        self.logs.setdefault(row.job_id, b"")
        return row

    async def print(self, job: JobRow, data: bytes) -> None:
        async with self.changed:
            self.logs[job.job_id] += data
            self.changed.notify_all()

    async def end(self, job: JobRow, status: str = "failed") -> None:
        self.add(job.submission, status, job.node)
        async with self.changed:
            self.complete.add(job.job_id)
            self.changed.notify_all()

    def finish(self, status: str) -> None:
        self.status = status
        self.over.set()


@pytest.fixture
def fake() -> FakeInstallation:
    return FakeInstallation()


async def read(fake: FakeInstallation, **options: object) -> list[LogPiece]:
    wanted = {"run_id": RUN, "slot": (0, 0), "attempt": None, "wait": True} | options
    pieces = follow(fake, "main", "x", **wanted)  # pyright: ignore
    return [piece async for piece in pieces]


def together(pieces: list[LogPiece]) -> dict[int, bytes]:
    """The bytes of each attempt; every piece must begin where the one before ended."""
    logs: dict[int, bytes] = {}
    for piece in pieces:
        assert piece.offset == len(logs.setdefault(piece.job.submission, b""))
        logs[piece.job.submission] += piece.data
    return logs


async def test_bytes_come_as_they_are_printed_until_the_run_ends(fake: FakeInstallation):
    job = fake.add(0)
    reading = asyncio.create_task(read(fake))
    for part in (b"one\n", b"\xff\0half a ", b"line\r", b""):
        await fake.print(job, part)
        await asyncio.sleep(0)
    await fake.end(job, "done")
    fake.finish("done")
    pieces = await reading
    assert together(pieces) == {0: b"one\n\xff\0half a line\r"}
    assert pieces[-1].complete
    assert not pieces[-1].missing


async def test_the_next_attempt_follows_the_one_before(fake: FakeInstallation):
    first = fake.add(0)
    reading = asyncio.create_task(read(fake))
    await fake.print(first, b"first")
    await fake.end(first)
    await asyncio.sleep(0.3)
    second = fake.add(1)
    await fake.print(second, b"second")
    await fake.end(second, "done")
    fake.finish("done")
    assert together(await reading) == {0: b"first", 1: b"second"}


async def test_one_attempt_is_read_to_its_end_and_no_further(fake: FakeInstallation):
    for submission in (0, 1):
        job = fake.add(submission)
        await fake.print(job, f"attempt {submission}".encode())
        await fake.end(job)
    assert together(await read(fake, attempt=0)) == {0: b"attempt 0"}


async def test_without_waiting_what_is_there_is_read(fake: FakeInstallation):
    job = fake.add(0)
    await fake.print(job, b"so far")
    assert together(await read(fake, wait=False)) == {0: b"so far"}
    assert all(query.wait == 0 for query in fake.queries)


async def test_another_node_is_read_when_asked_for(fake: FakeInstallation):
    fake.nodes = 2
    fake.add(0)
    job = fake.add(0, node=1)
    await fake.print(job, b"node one")
    assert together(await read(fake, slot=(0, 1), wait=False)) == {0: b"node one"}


async def test_a_client_on_the_same_host_reads_the_folder_itself(fake: FakeInstallation, tmp_path: Path):
    store = FolderBlobs(tmp_path, INSTALLATION)
    fake.blobs = store.url
    job = fake.add(0)
    data = bytes(range(256)) * 10_000
    await store.write_log(log_key(job.job_id), 0, data + b"not committed yet")
    await fake.print(job, data)
    await fake.end(job, "done")
    fake.finish("done")
    assert together(await read(fake)) == {0: data}
    assert not any(query.inline for query in fake.queries)


async def test_another_installations_folder_is_not_read(fake: FakeInstallation, tmp_path: Path):
    fake.blobs = FolderBlobs(tmp_path, uuid4()).url
    job = fake.add(0)
    await fake.print(job, b"inline")
    assert together(await read(fake, wait=False)) == {0: b"inline"}


async def test_a_log_whose_host_was_lost_ends_and_says_so(fake: FakeInstallation):
    job = fake.add(0)
    reading = asyncio.create_task(read(fake))
    await fake.print(job, b"part")
    await asyncio.sleep(0.05)
    fake.add(0, "failed")
    fake.finish("failed")
    pieces = await asyncio.wait_for(reading, 60)
    assert together(pieces) == {0: b"part"}
    assert pieces[-1].missing


async def test_a_job_that_has_not_begun_is_waited_for(fake: FakeInstallation):
    reading = asyncio.create_task(read(fake))
    await asyncio.sleep(0.1)
    job = fake.add(0)
    await fake.print(job, b"late")
    await fake.end(job, "done")
    fake.finish("done")
    assert together(await reading) == {0: b"late"}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"slot": (0, 7)}, "has no job 7 of replica 0"),
        ({"attempt": 9, "wait": False}, "has no attempt 9"),
    ],
)
async def test_what_is_not_there_is_told(fake: FakeInstallation, options: dict[str, object], told: str):
    fake.add(0)
    with pytest.raises(NoJob, match=told):
        await read(fake, **options)


async def test_a_run_that_ended_before_a_job_began_says_so(fake: FakeInstallation):
    fake.finish("failed")
    with pytest.raises(NotStarted, match="has not started a job"):
        await read(fake)


async def test_a_job_whose_turn_comes_after_another_nodes_is_waited_for(fake: FakeInstallation):
    fake.nodes = 2
    fake.add(0, node=1)
    reading = asyncio.create_task(read(fake))
    await asyncio.sleep(0.1)
    job = fake.add(0)
    await fake.print(job, b"the master begins")
    await fake.end(job, "done")
    fake.finish("done")
    assert together(await reading) == {0: b"the master begins"}


@pytest.mark.parametrize(("status", "wait"), [("running", False), ("failed", True)])
async def test_a_job_whose_turn_has_not_come_is_no_mistake(fake: FakeInstallation, status: str, wait: bool):
    fake.nodes, fake.status = 2, status
    fake.add(0, node=1)
    with pytest.raises(NotStarted, match="run x has not started job 0"):
        await read(fake, wait=wait)


async def test_the_last_job_there_can_be_is_named_before_any_has_begun(fake: FakeInstallation):
    fake.nodes = 2
    with pytest.raises(NoJob, match="has no job 2 of replica 0") as refused:
        await read(fake, slot=(0, 2))
    assert refused.value.hint == "its last one is job 1 of replica 0"
