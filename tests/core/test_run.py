"""What a run decides, rule by rule and by random interleavings."""

from __future__ import annotations

import itertools
import random
from datetime import timedelta

import pytest

from perdure.core import run as core
from perdure.core.run import state as happened
from perdure.model.events import ClaimFailed, ClaimGranted, JobEnded, JobReported, Placement, StopWanted
from perdure.model.messages import ClaimAnswer
from perdure.model.policy import Retry, RunPolicy
from perdure.model.statuses import (
    JOB_REASONS,
    RUN_REASONS,
    ClaimStatus,
    JobReason,
    JobStatus,
    RetryEvent,
    RunReason,
    RunStatus,
    StartupOrder,
    StopCriteria,
)
from tests.core.simulation import START, World, play


@pytest.mark.parametrize("block", range(20))
def test_no_interleaving_breaks_an_invariant(block: int) -> None:
    for seed in range(block * 500, (block + 1) * 500):
        _play_and_check(seed)


def _play_and_check(seed: int) -> None:
    world: World | None = None
    try:
        world = play(seed)
        world.check_at_rest()
    except AssertionError as error:
        trace = "\n".join(world.trace[-40:]) if world else ""
        raise AssertionError(f"seed {seed}: {error}\n{trace}") from error


# --- rules, one by one --------------------------------------------------------------------------------------------


class Run:
    """A run driven by hand."""

    def __init__(self, **policy: object):
        values = {"project": "main", "name": "r", "submitted_at": START, **policy}
        self.policy = RunPolicy(run_id="00000000-0000-4000-8000-000000000001", **values)  # type: ignore[arg-type]
        self.now = START
        self.state = core.new_run(self.policy)
        self.commands: list[core.Command] = []
        self.settle()

    def settle(self) -> list[core.Command]:
        self.state, decision = core.settle(self.state, self.now)
        self.wake_at = decision.wake_at
        self.commands = list(decision.commands)
        return self.commands

    def happen(self, *events: core.Event) -> list[core.Command]:
        for event in events:
            self.state = core.apply(self.state, event)
        return self.settle()

    def wait(self, seconds: float) -> list[core.Command]:
        self.now += timedelta(seconds=seconds)
        return self.settle()

    @property
    def replica(self) -> happened.Replica:
        return self.state.replicas[0]

    @property
    def claim(self):
        return self.state.claim_of(self.replica)

    def places(self) -> tuple[Placement, ...]:
        return tuple(
            Placement(
                node=node, instance_id=f"00000000-0000-4000-8000-0000000001{node:02}", address=f"127.0.0.{node}"
            )
            for node in range(self.policy.nodes)
        )

    def ready(self) -> list[core.Command]:
        answer = ClaimAnswer(status=ClaimStatus.READY, placements=self.places())
        commands = self.happen(happened.Placed(claim_id=self.claim, answer=answer, at=self.now))
        return self.start(commands)

    def start(self, commands: list[core.Command]) -> list[core.Command]:
        """Let the jobs that were to be started start, and all that follow from that."""
        starts = [command for command in commands if isinstance(command, core.StartJob)]
        done = list(starts)
        for command in starts:
            more = self.happen(
                happened.Started(replica=0, node=command.node, submission=command.submission, key=command.key),
                self.reported(command.node),
            )
            done += self.start(more)
        return done

    def reported(self, node: int, status: JobStatus = JobStatus.RUNNING) -> JobReported:
        return JobReported(
            run_id=self.policy.run_id,
            replica=0,
            node=node,
            submission=self.replica.submission,
            status=status,
            at=self.now,
        )

    def ended(
        self, node: int, reason: JobReason = JobReason.DONE_BY_RUNNER, submission: int | None = None
    ) -> JobEnded:
        return JobEnded(
            run_id=self.policy.run_id,
            replica=0,
            node=node,
            submission=self.replica.submission if submission is None else submission,
            status=JOB_REASONS[reason].status,
            reason=reason,
            at=self.now,
        )


def only(commands: list[core.Command], kind: type) -> list:
    assert all(isinstance(command, kind) for command in commands), commands
    return commands


ERROR = JobReason.CONTAINER_EXITED_WITH_ERROR
ALL_RETRY = Retry(on=tuple(RetryEvent))


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


def test_after_a_reset_finished_jobs_are_adopted_not_run_again() -> None:
    run = Run(nodes=2)
    answer = ClaimAnswer(status=ClaimStatus.RELEASED)
    known = (run.ended(0), run.ended(1))
    [close] = run.happen(happened.Placed(claim_id=run.claim, answer=answer, at=START, known=known))
    assert close.status is RunStatus.DONE


def test_every_run_reason_has_a_final_status() -> None:
    assert set(RUN_REASONS) == set(RunReason)
    assert set(JOB_REASONS) == set(JobReason)
    assert all(rule.status.final for rule in RUN_REASONS.values())
    assert all(rule.status.final for rule in JOB_REASONS.values())


def test_state_survives_the_wire() -> None:
    rng = random.Random(1)
    for seed in range(200):
        world = play(seed, steps=rng.randrange(1, 40))
        assert core.RunState.model_validate(world.state.model_dump(mode="json")) == world.state
