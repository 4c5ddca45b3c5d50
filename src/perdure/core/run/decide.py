"""``decide(state, now)``: what to do next about a run, and when to look again."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from perdure.core.run.apply import apply
from perdure.core.run.calendar import end_of_occurrence, next_of_schedule, next_slot
from perdure.core.run.commands import (
    Act,
    Close,
    Command,
    Decision,
    EndReplica,
    EndRun,
    MakeInstance,
    PlaceReplica,
    Rest,
    Resubmit,
    StartJob,
    StopJob,
    WithdrawClaim,
    place_key,
)
from perdure.core.run.retry import deadline, failure_of, pause, refusal, refusal_of_job, resume_at
from perdure.core.run.state import Failure, Issued, Job, Phase, Replica, RunState, Stop
from perdure.model.statuses import (
    RUN_REASONS,
    JobReason,
    JobStatus,
    RetryEvent,
    RunReason,
    StartupOrder,
    StopCriteria,
)

BY_USER = (RunReason.STOPPED_BY_USER, RunReason.ABORTED_BY_USER)
RESUBMIT_WORDS = "the run is to be resubmitted"


def settle(state: RunState, now: datetime) -> tuple[RunState, Decision]:
    """Decide, note what was decided, and decide again, until nothing more is to be done at ``now``.

    Returns the state with every command noted as given, and the commands in order with the next time to look.
    """
    given: list[Command] = []
    while True:
        decision = decide(state, now)
        for command in decision.commands:
            state = apply(state, Issued(command=command))
            if isinstance(command, Act | Close):
                given.append(command)
        if not decision.commands or isinstance(decision.commands[-1], Close):
            return state, decision.but(commands=tuple(given))


def decide(state: RunState, now: datetime) -> Decision:
    """What to do next about a run. Pure: same state and time, same answer."""
    end = _verdict(state, now)
    if end is not None:
        return Decision(commands=(end,))
    commands = [
        command
        for replica in state.replicas
        for command in _replica(state, replica, now)
        if not isinstance(command, Act) or command.key not in state.outstanding
    ]
    if not commands and state.ending is None:
        commands = list(next_of_schedule(state, now))
    if commands:
        return Decision(commands=tuple(commands))
    if state.ending is not None and not state.outstanding and all(it.phase is Phase.OVER for it in state.replicas):
        if state.calendar is not None and state.calendar.occurrence is not None:
            return Decision(commands=(end_of_occurrence(state, now),))
        status = RUN_REASONS[state.ending].status
        return Decision(commands=(Close(status=status, reason=state.ending, message=state.ending_message),))
    wake_at, why = _wake(state, now)
    return Decision(wake_at=wake_at, why=why)


# --- does the run end? --------------------------------------------------------------------------------------------


def _verdict(state: RunState, now: datetime) -> EndRun | None:
    """The first reason to end that holds: a stop beats everything, a failure beats an end that is well."""
    stop = state.stopping
    if stop is Stop.ABORT and state.ending in (None, RunReason.STOPPED_BY_USER):
        return EndRun(reason=RunReason.ABORTED_BY_USER, message=_by("aborted", state))
    if state.ending is not None:
        return None
    if stop is Stop.GRACEFUL:
        return EndRun(reason=RunReason.STOPPED_BY_USER, message=_by("stopped", state))
    if state.idle:
        return None
    failures = [end for replica in state.replicas for end in _final_failures(state, replica, now)]
    if failures:
        return min(failures, key=lambda end: end.reason is not RunReason.JOB_FAILED)
    if state.policy.stop_criteria is StopCriteria.MASTER_DONE and any(_master_done(it) for it in state.replicas):
        return EndRun(reason=RunReason.ALL_JOBS_DONE)
    if all(_all_done(it) for it in state.replicas):
        return EndRun(reason=RunReason.ALL_JOBS_DONE)
    return None


def _by(done: str, state: RunState) -> str:
    """``stopped by ann``; nothing if it is not known who did it."""
    return f"{done} by {state.stopped_by}" if state.stopped_by else ""


def _final_failures(state: RunState, replica: Replica, now: datetime) -> Iterator[EndRun]:
    """Every failure of this replica that is not to be tried again."""
    ends: list[tuple[RunReason, str] | None] = []
    if replica.failure is not None:
        if not replica.jobs:
            ends.append(refusal(state, replica, replica.failure))
    elif replica.phase is Phase.WAITING:
        end = deadline(state, replica)
        if end is not None and now >= end:
            failure = Failure(event=RetryEvent.NO_CAPACITY, at=end, message=replica.message)
            ends.append(refusal(state, replica, failure))
    else:
        ends += (refusal_of_job(state, replica, job) for job in replica.jobs)
    yield from (EndRun(reason=end[0], message=end[1]) for end in ends if end is not None)


def _master_done(replica: Replica) -> bool:
    return any(job.node == 0 and job.status is JobStatus.DONE for job in replica.jobs)


def _all_done(replica: Replica) -> bool:
    if replica.phase is Phase.OVER:
        return True
    return bool(replica.jobs) and all(job.status is JobStatus.DONE for job in replica.jobs)


# --- one replica --------------------------------------------------------------------------------------------------


def _replica(state: RunState, replica: Replica, now: datetime) -> Iterator[Command]:
    if replica.phase is Phase.OVER or _claim_is_asked(state, replica):
        return
    if replica.found:
        yield _place(state, replica, now)
        return
    if state.ending is not None:
        yield from _wind_down(state, replica)
        return
    match replica.phase:
        case Phase.RESTING:
            if replica.not_before is None or now >= replica.not_before:
                yield _place(state, replica, now)
        case Phase.CLAIMING | Phase.WAITING:
            pass
        case Phase.MAKING:
            yield from (
                MakeInstance(replica=replica.num, placement=place) for place in replica.placements if place.fresh
            )
        case Phase.LIVE:
            yield from _live(state, replica)


def _claim_is_asked(state: RunState, replica: Replica) -> bool:
    """The answer about its claim may say that jobs have been started on it: nothing is decided before."""
    claim = state.claim_of(replica)
    return place_key(claim) in state.outstanding or f"withdraw {claim}" in state.outstanding


def _place(state: RunState, replica: Replica, now: datetime) -> PlaceReplica:
    end = deadline(state, replica)
    return PlaceReplica(
        replica=replica.num,
        submission=replica.submission,
        claim_id=state.claim_of(replica),
        wait=end is not None and now < end,
        keep=pause(state, replica) if end is not None else 0.0,
    )


def _live(state: RunState, replica: Replica) -> Iterator[Command]:
    if replica.failure is not None:
        yield from _try_again(state, replica)
        return
    for job in replica.jobs:
        failure = failure_of(state, job)
        if failure is not None:
            yield Resubmit(replica=replica.num, failure=failure)
            return
    addresses = tuple(place.address or "" for place in replica.placements)
    for job in replica.jobs:
        if not job.started and _its_turn(state.policy.startup_order, job, replica.jobs):
            yield StartJob(
                replica=replica.num,
                node=job.node,
                submission=replica.submission,
                claim_id=state.claim_of(replica),
                placement=job.placement,
                addresses=addresses,
            )


def _its_turn(order: StartupOrder, job: Job, jobs: tuple[Job, ...]) -> bool:
    up = (JobStatus.RUNNING, JobStatus.DONE)
    match order:
        case StartupOrder.ANY:
            return True
        case StartupOrder.MASTER_FIRST:
            return job.node == 0 or jobs[0].status in up
        case StartupOrder.WORKERS_FIRST:
            return job.node != 0 or all(other.status in up for other in jobs if other.node != 0)


def _try_again(state: RunState, replica: Replica) -> Iterator[Command]:
    """The whole gang ends first; then it rests, and is claimed anew."""
    failure = replica.failure
    assert failure is not None
    steps = list(_quieten(state, replica, JobReason.TERMINATED_BY_SERVER, abort=False, why=RESUBMIT_WORDS))
    if steps or not _quiet(state, replica):
        yield from steps
        return
    ran = failure.event is not RetryEvent.NO_CAPACITY or bool(replica.jobs)
    yield Rest(
        replica=replica.num,
        until=resume_at(state, replica, failure),
        next_submission=ran,
        clock=failure.at if ran else replica.clock,
    )


# --- winding down -------------------------------------------------------------------------------------------------


def _wind_down(state: RunState, replica: Replica) -> Iterator[Command]:
    match replica.phase:
        case Phase.CLAIMING:
            return
        case Phase.WAITING | Phase.MAKING:
            yield WithdrawClaim(replica=replica.num, claim_id=state.claim_of(replica))
        case Phase.LIVE:
            assert state.ending is not None
            reason = RUN_REASONS[state.ending].stamp
            abort = state.stopping is Stop.ABORT
            why = "" if state.ending in BY_USER else state.ending_message  # the job's reason says it
            steps = list(_quieten(state, replica, reason, abort=abort, why=why))
            yield from steps
            if not steps and _quiet(state, replica):
                yield EndReplica(replica=replica.num)
        case Phase.RESTING | Phase.OVER:
            yield EndReplica(replica=replica.num)


def _quieten(
    state: RunState, replica: Replica, reason: JobReason, *, abort: bool, why: str
) -> Iterator[StopJob | WithdrawClaim]:
    """End the jobs that run; then give back the places of those that were never started."""
    wanted = Stop.ABORT if abort else Stop.GRACEFUL
    for job in replica.jobs:
        if job.started and not job.over and job.stop not in (wanted, Stop.ABORT):
            yield StopJob(
                replica=replica.num,
                node=job.node,
                submission=replica.submission,
                reason=reason,
                abort=abort,
                message=why,
            )
    unstarted = not replica.jobs or not all(job.started for job in replica.jobs)
    if not _busy(state, replica) and replica.loose and unstarted:
        yield WithdrawClaim(replica=replica.num, claim_id=state.claim_of(replica))


def _busy(state: RunState, replica: Replica) -> bool:
    """Something of the replica runs, or is being started."""
    starting = f"start {replica.num}-"
    return any(job.started and not job.over for job in replica.jobs) or any(
        key.startswith(starting) for key in state.outstanding
    )


def _quiet(state: RunState, replica: Replica) -> bool:
    return not _busy(state, replica) and all(job.over or not job.started for job in replica.jobs)


# --- the next look ------------------------------------------------------------------------------------------------


def _wake(state: RunState, now: datetime) -> tuple[datetime | None, str]:
    """The earliest time at which time alone changes the answer, and what for."""
    times: list[tuple[datetime, str]] = []
    if state.ending is None:
        slot = next_slot(state)
        if slot is not None:
            times.append((slot, "next occurrence"))
        for replica in state.replicas:
            if replica.phase is Phase.RESTING and replica.not_before is not None:
                times.append((replica.not_before, "backoff before the next try"))
            end = deadline(state, replica)
            if replica.phase is Phase.WAITING and end is not None:
                times.append((end, "end of the wait for capacity"))
    future = [time for time in times if time[0] > now]
    return min(future) if future else (None, "")
