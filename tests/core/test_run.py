"""What a run decides, rule by rule; ``test_lives`` has them all at once."""

from __future__ import annotations

import itertools

import pytest

from perdure.core import run as core
from perdure.core.run import state as happened
from perdure.model.events import ClaimFailed, ClaimGranted, StopWanted
from perdure.model.messages import ClaimAnswer
from perdure.model.policy import Retry
from perdure.model.statuses import (
    JOB_REASONS,
    RUN_REASONS,
    ClaimStatus,
    JobReason,
    JobStatus,
    RunReason,
    RunStatus,
    StartupOrder,
    StopCriteria,
)
from tests.core.driven import ALL_RETRY, ERROR, Run, only
from tests.core.simulation import START


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("retry", [None, ALL_RETRY])
@pytest.mark.parametrize("pause", [0.0, 45.0])
def test_finished_gang_is_never_run_again(order: tuple[int, ...], retry: Retry | None, pause: float) -> None:
    run = Run(nodes=3, retry=retry)
    run.ready()
    for node in order[:-1]:
        assert run.happen(run.ended(node)) == []
        assert run.wait(pause) == []
    [close] = run.happen(run.ended(order[-1]))
    assert isinstance(close, core.Close)
    assert close.status is RunStatus.DONE


def test_a_gang_waits_for_all_its_nodes_before_any_job_starts() -> None:
    run = Run(nodes=2)
    places = tuple(place.but(fresh=True, address=None) for place in run.places())
    answer = ClaimAnswer(status=ClaimStatus.GRANTED, placements=places)
    assert (
        len(only(run.happen(happened.Placed(claim_id=run.claim, answer=answer, at=START)), core.MakeInstance)) == 2
    )
    assert core.view(run.state).status is RunStatus.PROVISIONING
    granted = ClaimGranted(run_id=run.policy.run_id, claim_id=run.claim, placements=run.places(), ready=True)
    assert len(only(run.happen(granted), core.StartJob)) == 2


@pytest.mark.parametrize(
    ("order", "first"), [(StartupOrder.MASTER_FIRST, [0]), (StartupOrder.WORKERS_FIRST, [1, 2])]
)
def test_startup_order_is_kept(order: StartupOrder, first: list[int]) -> None:
    run = Run(nodes=3, startup_order=order)
    answer = ClaimAnswer(status=ClaimStatus.READY, placements=run.places())
    commands = run.happen(happened.Placed(claim_id=run.claim, answer=answer, at=START))
    assert [command.node for command in only(commands, core.StartJob)] == first
    assert len(run.start(commands)) == 3


def test_failure_of_one_node_ends_the_others_and_the_run() -> None:
    run = Run(nodes=3)
    run.ready()
    stops = only(run.happen(run.ended(2, ERROR)), core.StopJob)
    assert [(stop.node, stop.reason, stop.abort) for stop in stops] == [
        (0, JobReason.TERMINATED_BY_SERVER, False),
        (1, JobReason.TERMINATED_BY_SERVER, False),
    ]
    run.happen(*(happened.Stopped(key=stop.key) for stop in stops))
    run.happen(run.ended(0, JobReason.TERMINATED_BY_SERVER))
    [close] = run.happen(run.ended(1, JobReason.TERMINATED_BY_SERVER))
    assert (close.status, close.reason) == (RunStatus.FAILED, RunReason.JOB_FAILED)


def test_a_claim_that_lost_an_instance_is_given_back_before_it_is_made_anew() -> None:
    run = Run(nodes=2, retry=ALL_RETRY)
    places = tuple(place.but(fresh=True, address=None) for place in run.places())
    answer = ClaimAnswer(status=ClaimStatus.GRANTED, placements=places)
    makes = run.happen(happened.Placed(claim_id=run.claim, answer=answer, at=START))
    run.happen(*(happened.Made(instance_id=make.placement.instance_id, key=make.key) for make in makes))
    lost = ClaimFailed(run_id=run.policy.run_id, claim_id=run.claim, at=START, message="one went away")
    [withdraw] = only(run.happen(lost), core.WithdrawClaim)
    partial = ClaimGranted(run_id=run.policy.run_id, claim_id=run.claim, placements=run.places()[:1], ready=True)
    assert run.happen(partial) == []
    assert run.happen(happened.Withdrawn(claim_id=withdraw.claim_id, key=withdraw.key)) == []
    [place] = only(run.wait(15), core.PlaceReplica)
    assert place.claim_id != withdraw.claim_id


def test_a_grant_of_fewer_nodes_than_asked_starts_nothing() -> None:
    run = Run(nodes=2)
    partial = ClaimGranted(run_id=run.policy.run_id, claim_id=run.claim, placements=run.places()[:1], ready=True)
    assert run.happen(partial) == []


def test_late_news_of_an_older_submission_changes_nothing() -> None:
    run = Run(retry=ALL_RETRY)
    run.ready()
    run.happen(run.ended(0, ERROR))
    run.wait(15)
    run.ready()
    before = run.state.replicas
    run.happen(run.ended(0, JobReason.DONE_BY_RUNNER, submission=0), run.reported(0))
    assert run.state.replicas == before


def test_the_first_end_counts() -> None:
    run = Run(nodes=2)
    run.ready()
    run.happen(run.ended(0))
    run.happen(run.ended(0, ERROR))
    assert run.replica.jobs[0].status is JobStatus.DONE


def test_master_done_ends_the_run_and_its_workers_are_no_success() -> None:
    run = Run(nodes=3, stop_criteria=StopCriteria.MASTER_DONE)
    run.ready()
    stops = only(run.happen(run.ended(0)), core.StopJob)
    assert {stop.reason for stop in stops} == {JobReason.TERMINATED_BY_SERVER}
    run.happen(*(happened.Stopped(key=stop.key) for stop in stops))
    run.happen(run.ended(1, JobReason.TERMINATED_BY_SERVER))
    [close] = run.happen(run.ended(2, JobReason.TERMINATED_BY_SERVER))
    assert close.status is RunStatus.DONE


def test_worker_failure_under_master_done_still_fails_the_run() -> None:
    run = Run(nodes=2, stop_criteria=StopCriteria.MASTER_DONE)
    run.ready()
    run.happen(run.ended(1, ERROR))
    assert run.state.ending is RunReason.JOB_FAILED


def test_no_capacity_without_retry_fails_at_once_and_says_what_was_tried() -> None:
    run = Run()
    answer = ClaimAnswer(status=ClaimStatus.REFUSED, message="no offer of local fits: cpu")
    [close] = run.happen(happened.Placed(claim_id=run.claim, answer=answer, at=START))
    assert (close.status, close.message) == (RunStatus.FAILED, "no offer of local fits: cpu")


@pytest.mark.parametrize("abort", [False, True])
def test_stop_ends_every_job_and_the_run(abort: bool) -> None:
    run = Run(nodes=2)
    run.ready()
    stops = only(run.happen(StopWanted(abort=abort)), core.StopJob)
    wanted = JobReason.ABORTED_BY_USER if abort else JobReason.TERMINATED_BY_USER
    assert [(stop.reason, stop.abort) for stop in stops] == [(wanted, abort)] * 2
    run.happen(*(happened.Stopped(key=stop.key) for stop in stops))
    run.happen(run.ended(0, wanted))
    [close] = run.happen(run.ended(1, wanted))
    assert close.status is RunStatus.TERMINATED


def test_second_stop_aborts_what_the_first_has_not_ended() -> None:
    run = Run()
    run.ready()
    [stop] = run.happen(StopWanted())
    run.happen(happened.Stopped(key=stop.key))
    assert run.happen(StopWanted()) == []
    [abort] = only(run.happen(StopWanted(abort=True)), core.StopJob)
    assert abort.abort
    run.happen(happened.Stopped(key=abort.key))
    [close] = run.happen(run.ended(0, JobReason.ABORTED_BY_USER))
    assert close.reason is RunReason.ABORTED_BY_USER


def test_stop_while_waiting_gives_the_claim_back() -> None:
    run = Run(retry=ALL_RETRY)
    run.happen(happened.Placed(claim_id=run.claim, answer=ClaimAnswer(status=ClaimStatus.WAITING), at=START))
    [withdraw] = only(run.happen(StopWanted()), core.WithdrawClaim)
    [close] = run.happen(happened.Withdrawn(claim_id=withdraw.claim_id, key=withdraw.key))
    assert close.status is RunStatus.TERMINATED


def test_grant_that_crosses_a_stop_starts_nothing() -> None:
    run = Run(retry=ALL_RETRY)
    run.happen(happened.Placed(claim_id=run.claim, answer=ClaimAnswer(status=ClaimStatus.WAITING), at=START))
    [withdraw] = run.happen(StopWanted())
    granted = ClaimGranted(run_id=run.policy.run_id, claim_id=run.claim, placements=run.places(), ready=True)
    assert run.happen(granted) == []
    [close] = run.happen(happened.Withdrawn(claim_id=withdraw.claim_id, key=withdraw.key))
    assert close.status is RunStatus.TERMINATED


def test_nodes_that_never_started_are_given_back_after_the_others_have_ended() -> None:
    run = Run(nodes=2, startup_order=StartupOrder.MASTER_FIRST)
    answer = ClaimAnswer(status=ClaimStatus.READY, placements=run.places())
    [start] = run.happen(happened.Placed(claim_id=run.claim, answer=answer, at=START))
    run.happen(happened.Started(replica=0, node=0, submission=0, key=start.key))
    [stop] = only(run.happen(StopWanted()), core.StopJob)
    run.happen(happened.Stopped(key=stop.key))
    [withdraw] = only(run.happen(run.ended(0, JobReason.TERMINATED_BY_USER)), core.WithdrawClaim)
    [close] = run.happen(happened.Withdrawn(claim_id=withdraw.claim_id, key=withdraw.key))
    assert close.status is RunStatus.TERMINATED


def test_every_run_reason_has_a_final_status() -> None:
    assert set(RUN_REASONS) == set(RunReason)
    assert set(JOB_REASONS) == set(JobReason)
    assert all(rule.status.final for rule in RUN_REASONS.values())
    assert all(rule.status.final for rule in JOB_REASONS.values())
