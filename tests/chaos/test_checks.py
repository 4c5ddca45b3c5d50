"""The checks of a soak find what they are for: each of them, in a story with one thing wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import WorkflowHistory

from perdure.model.api import Check, JobRow, RunRow
from tests.chaos import jobs
from tests.chaos.checks import verdicts
from tests.chaos.evidence import Evidence, Story
from tests.chaos.jobs import Witness
from tests.chaos.plan import Kind, OnTerm, Work
from tests.chaos.soak import Entry, Record

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
WORK = Work("soak-1", Kind.RETRIES, 0.0, nodes=1, lines=3, pace=0.1, code=7, failures=1, on_term=OnTerm.SAVES)


def story() -> Story:
    """A run that failed once, and then did not."""
    rows = (_job(0, "failed", "container_exited_with_error", 7), _job(1, "done", "done_by_runner", 0))
    row = RunRow(
        run_id=uuid4(),
        project="main",
        name=WORK.name,
        status="done",
        reason="all_jobs_done",
        submitted_at=BEGAN,
        jobs=rows,
    )
    starts = {
        job.job_id: Witness(0, job.job_id, 1, 3, (job.exit_status or 0,), (jobs.secret_hash(),)) for job in rows
    }
    logs = {job.job_id: jobs.printed(WORK, 0, job.job_id, 3) for job in rows}
    return Story(Entry(WORK, row.run_id, over=True), row, starts, logs)


def _job(submission: int, status: str, reason: str, code: int) -> JobRow:
    job_id, at = uuid4(), BEGAN + timedelta(seconds=20 * submission)
    return JobRow(
        job_id=job_id,
        replica=0,
        node=0,
        submission=submission,
        status=status,
        reason=reason,
        exit_status=code,
        log_bytes=len(jobs.printed(WORK, 0, job_id, 3)),
        log_complete=True,
        submitted_at=at,
        started_at=at,
        ended_at=at + timedelta(seconds=10),
    )


def evidence(*stories: Story, **changes: Any) -> Evidence:
    record = Record(1, entries=[it.entry for it in stories])
    plain = Evidence(record, list(stories), (Check(invariant="it holds", ok=True),), [], {}, [], 1)
    return replace(plain, **changes)


def broken(found: Evidence) -> set[int]:
    return {verdict.number for verdict in verdicts(found) if verdict.findings}


def test_a_run_that_went_as_planned_breaks_nothing() -> None:
    assert broken(evidence(story())) == set()


def _row(told: Story, **changes: Any) -> None:
    assert told.row is not None
    told.row = told.row.but(**changes)


def _last(told: Story, **changes: Any) -> None:
    assert told.row is not None
    *others, last = told.row.jobs
    told.row = told.row.but(jobs=(*others, last.but(**changes)))


def _witness(told: Story, **changes: Any) -> None:
    last = told.jobs[-1].job_id
    told.witnesses = {**told.witnesses, last: replace(told.witnesses[last], **changes)}


def _log(told: Story, change: Callable[[bytes], bytes]) -> None:
    last = told.jobs[-1].job_id
    told.logs[last] = change(told.logs[last])
    _last(told, log_bytes=len(told.logs[last]))


def _stray(told: Story) -> None:
    stray = UUID(int=5)
    told.witnesses = {**told.witnesses, stray: Witness(0, stray, 1, 0, (), ())}


def _history(events: int) -> WorkflowHistory:
    return WorkflowHistory("run/main/soak-1", [HistoryEvent() for _ in range(events)])


def _line_twice(log: bytes) -> bytes:
    lines = log.splitlines(keepends=True)
    return b"".join([lines[0], *lines])


@pytest.mark.parametrize(
    ("number", "wrong"),
    [
        (0, lambda it: setattr(it, "row", None)),
        (0, lambda it: setattr(it.entry, "over", False)),
        (0, lambda it: _row(it, status="failed", reason="job_failed")),
        (0, lambda it: _row(it, jobs=it.jobs[1:])),
        (2, lambda it: _witness(it, starts=2)),
        (2, lambda it: setattr(it, "witnesses", {})),
        (5, lambda it: _last(it, submitted_at=BEGAN + timedelta(seconds=10.9))),
        (6, lambda it: _last(it, exit_status=1)),
        (6, lambda it: _witness(it, exits=(7,))),
        (7, lambda it: _log(it, lambda log: log[:-30])),
        (7, lambda it: _log(it, lambda log: b"".join(log.splitlines(keepends=True)[:-1]))),
        (7, lambda it: _log(it, _line_twice)),
        (7, lambda it: _last(it, log_complete=False)),
        (7, lambda it: _last(it, log_bytes=1)),
        (9, _stray),
        (11, lambda it: it.histories.append(_history(200))),
        (12, lambda it: _witness(it, secrets=("another",))),
    ],
)
def test_what_is_wrong_with_a_run_is_found(number: int, wrong: Callable[[Story], None]) -> None:
    told = story()
    wrong(told)
    assert number in broken(evidence(told))


def test_a_stop_without_an_end_in_its_bound_is_found() -> None:
    late, never = story(), story()
    for told in (late, never):
        told.entry.stopped, told.entry.ended_in = True, 10.0
    assert broken(evidence(late, never)) == set()
    late.entry.ended_in = 301.0
    assert broken(evidence(late)) == {3}
    _row(never, status="terminating")
    assert 3 in broken(evidence(never))


def test_what_is_wrong_with_the_stack_is_found() -> None:
    bad = Check(invariant="it holds", ok=False, findings=("it does not",))
    assert broken(evidence(doctor=(bad,))) == {1}
    assert broken(evidence(left=["workflow run/main/soak-1 is open"])) == {0}
    assert broken(evidence(places_of_secrets=["worker.log"])) == {12}
    assert broken(evidence(record=Record(1, at_an_instant={"fleet local has 5 of at most 4"}))) == {4}
    assert broken(evidence(record=Record(1, not_back=["worker is not back"]))) == {0}
    assert broken(evidence(record=Record(1, changed_ends=["done, and then failed"]))) == {6}
