"""The exit status of a run is that of the jobs that its end is about."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

import pytest

from perdure.model.api import JobRow, RunRow
from perdure.model.ends import exit_status_of
from perdure.model.statuses import JobStatus, RunStatus

DONE, FAILED, STOPPED = JobStatus.DONE, JobStatus.FAILED, JobStatus.TERMINATED


@pytest.mark.parametrize(
    ("run", "ends", "status"),
    [
        (RunStatus.DONE, [(DONE, 0), (STOPPED, 143)], 0),
        (RunStatus.DONE, [(DONE, 0), (FAILED, 3)], 0),
        (RunStatus.FAILED, [(STOPPED, 143), (FAILED, 3), (FAILED, 2)], 3),
        (RunStatus.FAILED, [(DONE, 0), (FAILED, None)], None),
        (RunStatus.FAILED, [(STOPPED, 143), (FAILED, None)], None),
        (RunStatus.FAILED, [(DONE, 0), (STOPPED, 143)], 143),
        (RunStatus.TERMINATED, [(STOPPED, 143), (DONE, 0)], 143),
        (RunStatus.TERMINATED, [], None),
        (RunStatus.RUNNING, [(DONE, 0), (JobStatus.RUNNING, None)], None),
    ],
)
def test_it_is_of_those_that_the_end_is_about(
    run: RunStatus, ends: list[tuple[JobStatus, int | None]], status: int | None
):
    assert exit_status_of(run, ends) == status


def test_an_earlier_attempt_says_nothing_of_the_end():
    def job(node: int, submission: int, status: str, code: int | None) -> JobRow:
        return JobRow(job_id=uuid4(), replica=0, node=node, submission=submission, status=status, exit_status=code)

    run = RunRow(
        run_id=uuid4(),
        project="main",
        name="x",
        status="failed",
        submitted_at=datetime(2026, 1, 1, tzinfo=UTC),
        nodes=2,
        jobs=(job(0, 0, "failed", 9), job(1, 0, "terminated", 143), job(1, 1, "failed", 4)),
    )
    assert [(it.node, it.submission) for it in run.last_attempt] == [(1, 1)]
    assert run.exit_status == 4
    assert run.model_dump(mode="json")["exit_status"] == 4
    assert RunRow.model_validate_json(run.model_dump_json()) == run
