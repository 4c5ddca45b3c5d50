"""Everything that is on record when nothing moves any more: for the checks, and for who reads a violation."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowHistory
from temporalio.service import RPCError, RPCStatusCode

from perdure.client import PerdureClient
from perdure.model.api import Check, JobRow, RunRow
from perdure.model.errors import NotFound
from perdure.model.ids import job_workflow_id, run_workflow_id
from perdure.model.names import JOB_WORKFLOW, RUN_WORKFLOW
from tests.chaos import jobs
from tests.chaos.jobs import Witness
from tests.chaos.place import PROJECT, Place
from tests.chaos.soak import Entry, Record

_LOST = (EventType.EVENT_TYPE_WORKFLOW_TASK_TIMED_OUT, EventType.EVENT_TYPE_WORKFLOW_TASK_FAILED)

REST_WITHIN = 240.0
"""Seconds until what the sweep mends is mended: it passes every minute, twice for some."""


@dataclass
class Story:
    """One run: what its client, its records and its jobs themselves say."""

    entry: Entry
    row: RunRow | None
    witnesses: Mapping[UUID, Witness]
    logs: dict[UUID, bytes] = field(default_factory=dict)
    histories: list[WorkflowHistory] = field(default_factory=list)
    """Of the run and all its jobs."""

    @property
    def name(self) -> str:
        return self.entry.work.name

    @property
    def events(self) -> int:
        """Of all histories, without the workflow tasks that a killed worker lost: scheduled, started, timed out."""
        kinds = [event.event_type for history in self.histories for event in history.events]
        return len(kinds) - 3 * sum(kind in _LOST for kind in kinds)

    @property
    def jobs(self) -> tuple[JobRow, ...]:
        return self.row.jobs if self.row is not None else ()


@dataclass
class Evidence:
    record: Record
    stories: list[Story]
    doctor: tuple[Check, ...]
    left: list[str]
    """Workflows and processes that should have ended."""

    counts: dict[str, int]
    """Rows by table."""

    places_of_secrets: list[str]
    searched: int
    """Files."""


async def gather(place: Place, record: Record) -> Evidence:
    """Wait for rest, and look at everything.

    Raises:
        NotBack: a call is not answered.
    """
    doctor, left = await _at_rest(place)
    stories = [await _story(place, entry) for entry in record.entries]
    counts = {
        table: (await place.rows(f"SELECT count(*) AS n FROM {table}"))[0]["n"]
        for table in ("runs", "jobs", "claims", "instances", "events")
    }
    found, searched = await asyncio.to_thread(_search, place)
    return Evidence(record, stories, doctor, left, counts, found, searched)


async def _at_rest(place: Place) -> tuple[tuple[Check, ...], list[str]]:
    """The doctor's last word, and what has not ended, when both are content or ``REST_WITHIN`` is over."""
    until = time.monotonic() + REST_WITHIN
    while True:
        doctor = await place.insist(lambda client: client.doctor())
        left = [*await place.insist(_open_workflows), *place.agents_left()]
        living = (await place.rows("SELECT count(*) AS n FROM instances WHERE status <> 'terminated'"))[0]["n"]
        if place.shims() != living:
            left.append(f"{place.shims()} shims live, and {living} instances are on record")
        if (all(check.ok for check in doctor) and not left) or time.monotonic() > until:
            return doctor, left
        await asyncio.sleep(1)


async def _open_workflows(client: PerdureClient) -> list[str]:
    query = f"ExecutionStatus = 'Running' AND WorkflowType IN ('{RUN_WORKFLOW}', '{JOB_WORKFLOW}')"
    return [f"workflow {found.id} is open" async for found in client.temporal.list_workflows(query)]


async def _story(place: Place, entry: Entry) -> Story:
    name, run_id = entry.work.name, entry.run_id

    async def row(client: PerdureClient) -> RunRow | None:
        try:
            return await client.get_run(PROJECT, run_id=run_id)
        except NotFound:
            return None

    found = await place.insist(row) if run_id is not None else None
    story = Story(entry, found, jobs.witnesses(place.folder_of(name)))
    for job in story.jobs:
        if job.started_at is not None or job.log_bytes:
            story.logs[job.job_id] = await place.insist(lambda client, job=job: _log(client, story, job))
    ids = (
        [job_workflow_id(found.run_id, job.replica, job.node, job.submission) for job in story.jobs]
        if found
        else []
    )
    for workflow_id in [run_workflow_id(PROJECT, name), *ids]:
        story.histories += await place.insist(lambda client, of=workflow_id: _history(client, of))
    return story


async def _log(client: PerdureClient, story: Story, job: JobRow) -> bytes:
    pieces = client.follow_logs(
        PROJECT, story.name, run_id=story.entry.run_id, node=job.node, attempt=job.submission, wait=False
    )
    return b"".join([piece.data async for piece in pieces])


async def _history(client: PerdureClient, workflow_id: str) -> list[WorkflowHistory]:
    try:
        return [await client.temporal.get_workflow_handle(workflow_id).fetch_history()]
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return []
        raise


def _search(place: Place) -> tuple[list[str], int]:
    """Files of ours that hold the secret's value: logs, histories, the inventory; not what agents hand to jobs."""
    home, value = place.stack.home, jobs.SECRET_VALUE.encode()
    files = [
        path
        for path in [*home.rglob("*"), *place.records.rglob("*")]
        if path.is_file() and not path.is_relative_to(home / "instances")
    ]
    return [str(path) for path in files if value in path.read_bytes()], len(files)


def keep_logs(place: Place, folder: Path) -> None:
    """Put every log of the stack and its agents into ``folder``, and what jobs wrote down."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(place.stack.home / "logs", folder / "logs")
    for path in (place.stack.home / "instances").glob("*/**/*"):
        if path.suffix in (".log", ".out", ".json") and path.is_file():
            target = folder / "instances" / path.relative_to(place.stack.home / "instances")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    shutil.copytree(place.records, folder / "starts")


async def keep(place: Place, folder: Path, stories: list[Story]) -> None:
    """The same, and all that tells of these runs."""
    keep_logs(place, folder)
    for story in stories:
        (folder / f"{story.name}.txt").write_text(await told(place, story))
        for history in story.histories:
            (folder / f"{history.workflow_id.replace('/', '.')}.json").write_text(history.to_json())


async def told(place: Place, story: Story) -> str:
    """A run's row, its jobs, its events, and the program's own words about it."""
    lines = [f"{story.entry}", ""]
    if story.row is not None:
        row = story.row.but(configuration=None, jobs=())
        lines += [row.model_dump_json(indent=1), *(job.model_dump_json() for job in story.jobs), "", "events:"]
        ids = [str(story.row.run_id), *(str(job.job_id) for job in story.jobs)]
        mentions = " OR ".join(f"to_jsonb(e)::text LIKE '%{one}%'" for one in ids)
        events = await place.rows(f"SELECT to_jsonb(e)::text AS event FROM events e WHERE {mentions} ORDER BY at")
        lines += [json.dumps(json.loads(event["event"])) for event in events]
    try:
        explained = await asyncio.to_thread(place.stack.run, "explain", story.name)
        lines += ["", explained.stdout] if explained.returncode == 0 else []
    except subprocess.TimeoutExpired:
        lines += ["", "perdure explain does not answer"]
    return "\n".join(lines)
