"""What is tried again, when, how often, and what is said when it is not."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from perdure.core import run as core
from perdure.core.run import state as happened
from perdure.model.events import ClaimFailed
from perdure.model.messages import ClaimAnswer
from perdure.model.policy import Retry
from perdure.model.statuses import (
    JOB_REASONS,
    ClaimStatus,
    Fault,
    JobReason,
    JobStatus,
    RetryEvent,
    RunReason,
    RunStatus,
)
from perdure.model.timing import Timing
from tests.core.driven import ALL_RETRY, ERROR, Run, only
from tests.core.simulation import START

LIFECYCLE = Path(__file__).parents[2] / "docs" / "lifecycle.md"


def test_every_reason_is_in_the_table_and_a_failure_is_of_one_kind() -> None:
    assert set(JOB_REASONS) == set(JobReason)
    for reason, rule in JOB_REASONS.items():
        assert rule.status.final, reason
        assert (rule.retry is not None) == (rule.status is JobStatus.FAILED), reason
        assert (rule.fault is Fault.NOBODY) <= (rule.retry is None), reason
        assert rule.words and rule.words[0].islower() and not rule.words.endswith("."), reason
    assert len({rule.words for rule in JOB_REASONS.values()}) == len(JOB_REASONS)


def test_the_table_of_reasons_in_the_docs_is_the_codes() -> None:
    rows = [
        f"| `{reason.value}` | {rule.status.value} | {rule.retry.value if rule.retry else ''} "
        f"| {rule.fault.value} | {rule.words} |"
        for reason, rule in JOB_REASONS.items()
    ]
    table = "\n".join(
        ["| reason | final status | `retry` event | whose fault | the job … |", "|---|---|---|---|---|", *rows]
    )
    assert table in LIFECYCLE.read_text(), table


def test_gang_is_retried_whole_after_the_backoff() -> None:
    run = Run(nodes=2, retry=ALL_RETRY)
    run.ready()
    [stop] = only(run.happen(run.ended(1, ERROR)), core.StopJob)
    run.happen(happened.Stopped(key=stop.key))
    assert run.happen(run.ended(0, JobReason.TERMINATED_BY_SERVER)) == []
    assert core.view(run.state).status is RunStatus.PENDING
    assert run.wake_at == START + timedelta(seconds=15)
    assert run.wait(14.9) == []
    [place] = only(run.wait(0.1), core.PlaceReplica)
    assert place.submission == 1
    assert len(run.ready()) == 2


def test_the_wait_for_capacity_uses_its_window_in_full() -> None:
    run = Run(retry=Retry(on=(RetryEvent.NO_CAPACITY,), duration=100))
    [place] = only(run.commands, core.PlaceReplica)
    assert place.wait
    waiting = ClaimAnswer(status=ClaimStatus.WAITING, message="full")
    assert run.happen(happened.Placed(claim_id=run.claim, answer=waiting, at=START)) == []
    assert run.wake_at == START + timedelta(seconds=100)
    assert run.wait(99.9) == []
    [withdraw] = only(run.wait(0.1), core.WithdrawClaim)
    [close] = run.happen(happened.Withdrawn(claim_id=withdraw.claim_id, key=withdraw.key))
    assert (close.status, close.reason) == (RunStatus.FAILED, RunReason.RETRY_LIMIT_EXCEEDED)
    assert close.message == "the no-capacity window of 1m40s is over: full"


def test_failed_placements_back_off_and_the_last_try_is_at_the_end_of_the_window() -> None:
    run = Run(retry=Retry(on=(RetryEvent.NO_CAPACITY,), duration=40))
    times: list[float] = []
    while run.state.ending is None:
        times.append((run.now - START).total_seconds())
        failed = ClaimFailed(run_id=run.policy.run_id, claim_id=run.claim, at=run.now, message="no offer")
        run.happen(happened.Placed(claim_id=run.claim, answer=ClaimAnswer(status=ClaimStatus.WAITING), at=run.now))
        for withdraw in run.happen(failed):
            run.happen(happened.Withdrawn(claim_id=withdraw.claim_id, key=withdraw.key))
        if run.wake_at is not None:
            run.wait((run.wake_at - run.now).total_seconds())
    assert times == [0, 15, 40]
    assert run.state.ending is RunReason.RETRY_LIMIT_EXCEEDED
    assert run.state.ending_message == "the no-capacity window of 40s is over"


def test_max_attempts_counts_every_submission() -> None:
    run = Run(retry=Retry(on=(RetryEvent.ERROR,), max_attempts=3))
    for _ in range(2):
        run.ready()
        run.happen(run.ended(0, ERROR))
        assert run.state.ending is None
        run.wait(600)
    run.ready()
    run.happen(run.ended(0, ERROR))
    assert run.state.ending is RunReason.RETRY_LIMIT_EXCEEDED
    assert run.state.ending_message.startswith("gave up after 3 tries: node 0 ")


@pytest.mark.parametrize("reason", list(JobReason))
def test_every_reason_is_final_or_retried_as_the_table_says(reason: JobReason) -> None:
    for event in RetryEvent:
        run = Run(retry=Retry(on=(event,)))
        run.ready()
        run.happen(run.ended(0, reason))
        if reason in (JobReason.DONE_BY_RUNNER, JobReason.SCALED_DOWN):
            continue
        retried = run.state.ending is None
        assert retried == (JOB_REASONS[reason].retry is event), (reason, event)


def fail_and_wait(run: Run, seconds: float, status: int = 1) -> None:
    """One submission runs and fails; nothing happens until ``seconds`` later, and then the next one is claimed."""
    run.ready()
    assert run.happen(run.ended(0, ERROR, exit_status=status)) == []
    assert run.wait(seconds - 0.001) == []
    only(run.wait(0.001), core.PlaceReplica)


def test_the_pauses_are_the_published_ones_and_the_last_one_repeats() -> None:
    run = Run(retry=Retry(on=(RetryEvent.NO_CAPACITY,), duration=86400))
    times: list[float] = []
    while len(times) < 9:
        times.append((run.now - START).total_seconds())
        refused = ClaimAnswer(status=ClaimStatus.FAILED, message="no offer")
        assert run.happen(happened.Placed(claim_id=run.claim, answer=refused, at=run.now)) == []
        assert run.wake_at is not None
        only(run.wait((run.wake_at - run.now).total_seconds()), core.PlaceReplica)
    assert [after - before for before, after in pairwise(times)] == [15, 30, 60, 120, 300, 600, 600, 600]


def test_the_pauses_can_be_configured() -> None:
    run = Run(retry=Retry(on=(RetryEvent.NO_CAPACITY,), backoff=(1, 5)))
    for seconds in (1, 5, 5):
        refused = ClaimAnswer(status=ClaimStatus.FAILED)
        assert run.happen(happened.Placed(claim_id=run.claim, answer=refused, at=run.now)) == []
        assert run.wait(seconds - 0.001) == []
        only(run.wait(0.001), core.PlaceReplica)


def test_a_run_that_says_nothing_of_pauses_has_those_of_its_timing() -> None:
    run = Run(retry=ALL_RETRY, timing=Timing(retry_backoff=(3.0,)))
    fail_and_wait(run, 3)


def test_the_pauses_begin_anew_once_a_job_has_run() -> None:
    run = Run(retry=ALL_RETRY)
    for seconds in (15, 30):
        refused = ClaimAnswer(status=ClaimStatus.FAILED)
        run.happen(happened.Placed(claim_id=run.claim, answer=refused, at=run.now))
        run.wait(seconds)
    fail_and_wait(run, 15)


def test_an_exit_status_says_that_a_job_ran_though_nobody_heard_that_it_does() -> None:
    run = Run(retry=ALL_RETRY)
    for seconds in (15, 30):
        run.happen(happened.Placed(claim_id=run.claim, answer=ClaimAnswer(status=ClaimStatus.FAILED), at=run.now))
        run.wait(seconds)
    answer = ClaimAnswer(status=ClaimStatus.READY, placements=run.places())
    [start] = run.happen(happened.Placed(claim_id=run.claim, answer=answer, at=run.now))
    run.happen(
        happened.Started(replica=0, node=0, submission=start.submission, key=start.key),
        run.ended(0, ERROR, exit_status=1),
    )
    assert run.wait(14.999) == []
    only(run.wait(0.001), core.PlaceReplica)


@pytest.mark.parametrize("event", [RetryEvent.ERROR, RetryEvent.INTERRUPTION])
def test_the_window_of_an_error_begins_at_the_end_of_each_submission_that_failed(event: RetryEvent) -> None:
    reason = ERROR if event is RetryEvent.ERROR else JobReason.INTERRUPTED_BY_NO_CAPACITY
    run = Run(retry=Retry(on=(event,), duration=10))
    for _ in range(5):
        run.ready()
        run.wait(3600)
        assert run.happen(run.ended(0, reason)) == []
        assert run.wait(9.999) == []
        only(run.wait(0.001), core.PlaceReplica)


def test_waiting_after_a_submission_that_ran_is_measured_from_its_end() -> None:
    run = Run(retry=Retry(on=tuple(RetryEvent), duration=100))
    run.ready()
    run.wait(5000)
    run.happen(run.ended(0, ERROR))
    [place] = only(run.wait(15), core.PlaceReplica)
    assert place.wait
    waiting = ClaimAnswer(status=ClaimStatus.WAITING, message="full")
    assert run.happen(happened.Placed(claim_id=run.claim, answer=waiting, at=run.now)) == []
    assert run.wait(84.999) == []
    only(run.wait(0.001), core.WithdrawClaim)


def test_a_worker_that_was_away_takes_nothing_from_the_window() -> None:
    run = Run(retry=Retry(on=(RetryEvent.NO_CAPACITY,), duration=40))
    run.happen(happened.Placed(claim_id=run.claim, answer=ClaimAnswer(status=ClaimStatus.WAITING), at=run.now))
    at = run.now
    run.now += timedelta(hours=2)
    lost = ClaimFailed(run_id=run.policy.run_id, claim_id=run.claim, at=at, message="no offer")
    [withdraw] = only(run.happen(lost), core.WithdrawClaim)
    [place] = only(run.happen(happened.Withdrawn(claim_id=withdraw.claim_id, key=withdraw.key)), core.PlaceReplica)
    assert not place.wait, "the last try does not queue"


@pytest.mark.parametrize("on", [(RetryEvent.ERROR,), tuple(RetryEvent)])
def test_a_window_of_nothing_has_no_retry(on: tuple[RetryEvent, ...]) -> None:
    run = Run(retry=Retry(on=on, duration=0))
    run.ready()
    [close] = run.happen(run.ended(0, ERROR, exit_status=3))
    assert (close.status, close.reason) == (RunStatus.FAILED, RunReason.RETRY_LIMIT_EXCEEDED)
    assert close.message == "retry.duration is 0: node 0 exited with status 3"


def test_one_attempt_is_no_retry() -> None:
    run = Run(retry=Retry(on=(RetryEvent.ERROR,), max_attempts=1))
    run.ready()
    [close] = run.happen(run.ended(0, ERROR, exit_status=3))
    assert close.message == "gave up after 1 try: node 0 exited with status 3"


@pytest.mark.parametrize(
    ("status", "again"), [(0, False), (1, True), (2, False), (9, False), (10, True), (20, True)]
)
def test_only_the_exit_codes_that_are_named_are_tried_again(status: int, again: bool) -> None:
    run = Run(retry=Retry(on=(RetryEvent.ERROR,), on_exit_codes=((1, 1), (10, 20))))
    run.ready()
    run.happen(run.ended(0, ERROR, exit_status=status))
    assert (run.state.ending is None) == again
    if not again:
        assert run.state.ending is RunReason.JOB_FAILED
        words = f"node 0 exited with status {status}, which retry.on_exit_codes does not name"
        assert run.state.ending_message == words


@pytest.mark.parametrize(
    "reason", [JobReason.INSTANCE_UNREACHABLE, JobReason.EXECUTOR_ERROR, JobReason.VOLUME_ERROR]
)
def test_exit_codes_say_nothing_of_what_the_world_broke(reason: JobReason) -> None:
    run = Run(retry=Retry(on=(RetryEvent.ERROR,), on_exit_codes=((1, 1),)))
    run.ready()
    run.happen(run.ended(0, reason))
    assert run.state.ending is None


def test_an_error_before_anything_was_provisioned_is_tried_again_too() -> None:
    run = Run(retry=Retry(on=(RetryEvent.ERROR,)))
    answer = ClaimAnswer(status=ClaimStatus.READY, placements=run.places())
    [start] = run.happen(happened.Placed(claim_id=run.claim, answer=answer, at=run.now))
    run.happen(happened.Started(replica=0, node=0, submission=0, key=start.key))
    assert run.happen(run.ended(0, JobReason.VOLUME_ERROR)) == []
    only(run.wait(15), core.PlaceReplica)


def test_a_node_that_may_not_be_tried_again_fails_a_gang_whose_other_node_may() -> None:
    run = Run(nodes=2, retry=Retry(on=(RetryEvent.ERROR,), on_exit_codes=((1, 1),)))
    run.ready()
    run.happen(run.ended(1, ERROR, exit_status=1), run.ended(0, ERROR, exit_status=2))
    assert run.state.ending is RunReason.JOB_FAILED


def test_a_failure_that_is_not_tried_again_is_told_before_one_that_gave_up() -> None:
    run = Run(nodes=2, retry=Retry(on=(RetryEvent.ERROR,), max_attempts=1))
    run.ready()
    run.happen(run.ended(0, ERROR), run.ended(1, JobReason.INTERRUPTED_BY_NO_CAPACITY))
    assert run.state.ending is RunReason.JOB_FAILED
