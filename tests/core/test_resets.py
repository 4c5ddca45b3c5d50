"""After a Temporal reset: a new execution begins where Postgres says that the run was. Found by ``test_lives``."""

from __future__ import annotations

from datetime import timedelta

from perdure.core import run as core
from perdure.core.run import state as happened
from perdure.model.events import ClaimFailed, JobEnded, JobReported, Placement, StopWanted
from perdure.model.messages import ClaimAnswer, Progress
from perdure.model.policy import Retry
from perdure.model.statuses import ClaimStatus, JobReason, RetryEvent, RunReason, RunStatus
from tests.core.driven import ALL_RETRY, ERROR, Run, only
from tests.core.simulation import START


def reset(run: Run, submission: int = 0, attempt: int = 0) -> list[core.Command]:
    """Of a run that had come so far."""
    run.state = core.new_run(run.policy, (Progress(replica=0, submission=submission, attempt=attempt),))
    return run.settle()


def answered(
    run: Run, status: ClaimStatus, places: tuple[Placement, ...], *known: JobReported | JobEnded
) -> list[core.Command]:
    answer = ClaimAnswer(status=status, placements=places, again=True)
    return run.happen(happened.Placed(claim_id=run.claim, answer=answer, at=run.now, known=known))


def test_it_asks_for_the_latest_claim_first() -> None:
    run = Run(retry=ALL_RETRY)
    [place] = only(reset(run, submission=2, attempt=1), core.PlaceReplica)
    assert (place.submission, place.claim_id) == (2, run.claim)


def test_finished_jobs_are_adopted_not_run_again() -> None:
    run = Run(nodes=2)
    reset(run)
    [close] = answered(run, ClaimStatus.RELEASED, (), run.ended(0), run.ended(1))
    assert close.status is RunStatus.DONE


def test_a_gang_that_had_half_ended_goes_on_with_the_other_half() -> None:
    run = Run(nodes=2)
    reset(run)
    assert answered(run, ClaimStatus.READY, run.places()[1:], run.ended(0), run.reported(1)) == []
    assert core.view(run.state).status is RunStatus.RUNNING
    [close] = run.happen(run.ended(1))
    assert close.status is RunStatus.DONE


def test_a_stop_ends_jobs_that_ran_before() -> None:
    run = Run()
    reset(run)
    assert run.happen(StopWanted()) == []
    [stop] = only(answered(run, ClaimStatus.READY, run.places(), run.reported(0)), core.StopJob)
    run.happen(happened.Stopped(key=stop.key))
    [close] = run.happen(run.ended(0, JobReason.TERMINATED_BY_USER))
    assert close.status is RunStatus.TERMINATED


def test_a_stop_gives_back_a_claim_that_was_made_before() -> None:
    run = Run()
    run.state = core.new_run(run.policy, (Progress(replica=0, submission=0, attempt=0),))
    [place] = only(run.happen(StopWanted()), core.PlaceReplica)
    assert place.claim_id == run.claim
    [withdraw] = only(answered(run, ClaimStatus.GRANTED, run.places()), core.WithdrawClaim)
    [close] = run.happen(happened.Withdrawn(claim_id=withdraw.claim_id, key=withdraw.key))
    assert close.status is RunStatus.TERMINATED


def test_a_claim_that_lost_an_instance_meanwhile_is_given_back_and_made_anew() -> None:
    run = Run(nodes=2, retry=ALL_RETRY)
    reset(run)
    [withdraw] = only(answered(run, ClaimStatus.READY, run.places()[:1]), core.WithdrawClaim)
    run.happen(happened.Withdrawn(claim_id=withdraw.claim_id, key=withdraw.key))
    [place] = only(run.wait(15), core.PlaceReplica)
    assert place.claim_id != withdraw.claim_id


def test_a_failure_that_crosses_the_answer_starts_no_job_a_second_time() -> None:
    run = Run(nodes=2, retry=ALL_RETRY)
    reset(run)
    lost = ClaimFailed(run_id=run.policy.run_id, claim_id=run.claim, at=START, message="one went away")
    assert run.happen(lost) == []
    [stop] = only(
        answered(run, ClaimStatus.READY, run.places()[:1], run.reported(0), run.ended(1, ERROR)), core.StopJob
    )
    assert stop.node == 0


def test_an_end_that_comes_before_its_job_is_known_is_not_noted_as_heard() -> None:
    run = Run(retry=ALL_RETRY)
    reset(run)
    run.happen(run.ended(0, ERROR))
    assert run.state.unheard == ()
    assert answered(run, ClaimStatus.RELEASED, (), run.ended(0, ERROR)) == []
    assert len(run.state.unheard) == 1


def test_what_failed_before_takes_nothing_from_the_window() -> None:
    run = Run(retry=Retry(on=tuple(RetryEvent), duration=100))
    run.now += timedelta(hours=5)
    failed_at = run.now - timedelta(seconds=20)
    run.state = core.new_run(run.policy, (Progress(replica=0, submission=1, attempt=0, clock=failed_at),))
    run.settle()
    assert answered(run, ClaimStatus.WAITING, ()) == []
    assert run.wake_at == failed_at + timedelta(seconds=100)


def test_an_older_claim_is_not_looked_at_again() -> None:
    run = Run(retry=Retry(on=tuple(RetryEvent), duration=10))
    run.now += timedelta(hours=5)
    reset(run, submission=0, attempt=1)
    assert answered(run, ClaimStatus.READY, run.places(), run.reported(0)) == []
    assert run.state.ending is None
    run.happen(run.ended(0))
    assert run.state.ending is RunReason.ALL_JOBS_DONE
