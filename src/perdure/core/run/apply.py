"""``apply(state, event)``: take in what happened. Total: what does not fit the state changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from uuid import UUID

from perdure.core.run import calendar
from perdure.core.run.commands import (
    READING,
    BeginOccurrence,
    Command,
    EndOccurrence,
    EndReplica,
    EndRun,
    Failure,
    PlaceReplica,
    Rest,
    Resubmit,
    SkipSlot,
    StopJob,
    place_key,
)
from perdure.core.run.state import (
    CalendarRead,
    Event,
    Heard,
    Issued,
    Job,
    Made,
    Noted,
    Phase,
    Placed,
    Replica,
    RunState,
    Started,
    Stop,
    Stopped,
    Withdrawn,
)
from perdure.model.events import (
    ClaimFailed,
    ClaimGranted,
    JobEnded,
    JobReported,
    PauseWanted,
    Placement,
    StopWanted,
    TriggerWanted,
)
from perdure.model.ids import job_id
from perdure.model.messages import ClaimAnswer
from perdure.model.statuses import ClaimStatus, JobStatus, RetryEvent


def apply(state: RunState, event: Event) -> RunState:
    """The state after ``event``. An event of another run, claim or submission is dropped."""
    match event:
        case Issued():
            return _issued(state, event.command)
        case StopWanted():
            return _stop_wanted(state, event)
        case Placed():
            return _answered(_placed(state, event), place_key(event.claim_id))
        case ClaimGranted():
            return _granted(state, event.claim_id, event.placements, event.ready)
        case ClaimFailed():
            if place_key(event.claim_id) in state.outstanding:
                return state  # the answer that is under way says how it stands; if not, the sweep tells this again
            return _claim_failed(state, event.claim_id, event.at, event.message, event, holds=True)
        case Withdrawn():
            return _answered(_withdrawn(state, event.claim_id), event.key)
        case Made():
            return _answered(_made(state, event.instance_id), event.key)
        case Started():
            state = _job(state, event.replica, event.node, event.submission, lambda job: job.but(started=True))
            return _all(_answered(state, event.key), event.known)
        case Stopped():
            return _all(_answered(state, event.key), event.known)
        case JobReported():
            return _reported(state, event)
        case JobEnded():
            return _ended(state, event)
        case TriggerWanted():
            return calendar.triggered(state, event)
        case PauseWanted():
            return calendar.paused(state, event)
        case CalendarRead():
            return calendar.read(_answered(state, READING), event)
        case Noted():
            return state.but(notes=tuple(note for note in state.notes if note.number > event.number))
        case Heard():
            return state.but(unheard=tuple(job for job in state.unheard if job not in event.jobs))


def _all(state: RunState, events: Iterable[JobReported | JobEnded]) -> RunState:
    for event in events:
        state = apply(state, event)
    return state


def _answered(state: RunState, key: str) -> RunState:
    return state.but(outstanding=state.outstanding - {key})


# --- commands that were given -------------------------------------------------------------------------------------


def _issued(state: RunState, command: Command) -> RunState:
    match command:
        case BeginOccurrence():
            return calendar.begun(state, command)
        case SkipSlot():
            return calendar.skipped(state, command)
        case EndOccurrence():
            return calendar.ended(state, command)
        case EndRun():
            return state.but(ending=command.reason, ending_message=command.message)
        case Resubmit():
            return _replica(state, command.replica, lambda it: it.but(failure=command.failure))
        case Rest():
            return _replica(state, command.replica, lambda it: _rest(it, command))
        case EndReplica():
            return _replica(state, command.replica, lambda it: it.but(phase=Phase.OVER, loose=False))
        case PlaceReplica():
            state = _replica(
                state, command.replica, lambda it: it.but(phase=Phase.CLAIMING, not_before=None, found=False)
            )
        case StopJob():
            level = Stop.ABORT if command.abort else Stop.GRACEFUL
            state = _job(state, command.replica, command.node, command.submission, lambda job: job.but(stop=level))
        case _:
            pass
    return state.but(outstanding=state.outstanding | {command.key}) if command.kind != "close" else state


def _rest(replica: Replica, command: Rest) -> Replica:
    """Pause before the next claim: of the next submission, or of this one once more."""
    return replica.but(
        phase=Phase.RESTING,
        submission=replica.submission + 1 if command.next_submission else replica.submission,
        attempt=0 if command.next_submission else replica.attempt + 1,
        pauses=replica.pauses + 1,
        not_before=command.until,
        clock=command.clock,
        placements=(),
        jobs=(),
        failure=None,
        message=replica.failure.message if replica.failure else replica.message,
        loose=False,
    )


def _stop_wanted(state: RunState, event: StopWanted) -> RunState:
    """A stop only ever gets harder: graceful, then abort. That of an occurrence leaves the schedule."""
    if event.occurrence:
        now = state.calendar
        if now is None or now.occurrence is None or now.stop is Stop.ABORT:
            return state
        harder = state.but(calendar=now.but(stop=Stop.ABORT if event.abort else Stop.GRACEFUL))
    else:
        harder = state.but(stop=Stop.ABORT if event.abort or state.stop is Stop.ABORT else Stop.GRACEFUL)
    return state if harder == state else harder.but(stopped_by=event.by)


# --- placement ----------------------------------------------------------------------------------------------------


def _placed(state: RunState, event: Placed) -> RunState:
    answer = event.answer
    if event.known:
        return _adopted(state, event)
    if answer.status.holds and len(answer.placements) < state.policy.nodes:
        return _claim_failed(state, event.claim_id, event.at, "an instance of it went away", answer, holds=True)
    match answer.status:
        case ClaimStatus.GRANTED | ClaimStatus.READY:
            return _granted(state, event.claim_id, answer.placements, answer.status is ClaimStatus.READY)
        case ClaimStatus.WAITING:
            return _claim(
                state,
                event.claim_id,
                {Phase.CLAIMING},
                lambda it: it.but(phase=Phase.WAITING, message=answer.message, tried=answer.tried),
            )
        case ClaimStatus.REFUSED | ClaimStatus.FAILED:
            return _claim_failed(state, event.claim_id, event.at, answer.message, answer)
        case ClaimStatus.RELEASED:
            message = answer.message or "its claim was released meanwhile"
            return _claim_failed(state, event.claim_id, event.at, message, answer)


def _adopted(state: RunState, event: Placed) -> RunState:
    """Jobs were started on this claim before (a Temporal reset): they are as Postgres says, and not run again.

    One that was not, and has lost its place since, is started all the same: it tells that honestly itself.
    """
    held = {place.node: place for place in event.answer.placements}
    places = tuple(
        held.get(node) or Placement(node=node, instance_id=event.claim_id) for node in range(state.policy.nodes)
    )
    loose = bool(held.keys() - {known.node for known in event.known})
    state = _claim(
        state,
        event.claim_id,
        {Phase.CLAIMING, Phase.WAITING, Phase.MAKING},
        lambda it: _live(it, places).but(loose=loose),
    )
    return _all(state, event.known)


def _granted(state: RunState, claim: UUID, placements: tuple[Placement, ...], ready: bool) -> RunState:
    """All nodes or none: news that names fewer is of a claim that has lost an instance since."""
    if len(placements) != state.policy.nodes:
        return state
    placements = tuple(sorted(placements, key=lambda place: place.node))
    return _claim(
        state,
        claim,
        {Phase.CLAIMING, Phase.WAITING, Phase.MAKING},
        lambda it: _live(it, placements) if ready else _making(it, placements),
    )


def _making(replica: Replica, placements: tuple[Placement, ...]) -> Replica:
    if replica.phase is Phase.MAKING:
        return replica
    return replica.but(phase=Phase.MAKING, placements=placements, message="", tried=(), loose=True)


def _live(replica: Replica, placements: tuple[Placement, ...]) -> Replica:
    jobs = tuple(Job(node=place.node, placement=place) for place in placements)
    return replica.but(phase=Phase.LIVE, placements=placements, jobs=jobs, message="", tried=(), loose=True)


def _claim_failed(
    state: RunState,
    claim: UUID,
    at: datetime,
    message: str,
    said: ClaimFailed | ClaimAnswer,
    *,
    holds: bool = False,
) -> RunState:
    """No instance, or not all of them. ``holds``: what it has of others is still to be given back.

    Once a job of it has been started, or is being, the loss of an instance is that job's own to tell.
    """
    failure = Failure(event=RetryEvent.NO_CAPACITY, at=at, message=message)

    def change(replica: Replica) -> Replica:
        if any(job.started or start_key(replica, job) in state.outstanding for job in replica.jobs):
            return replica
        if replica.phase is Phase.LIVE and (replica.failure is not None or not replica.loose):
            return replica
        return replica.but(
            phase=Phase.LIVE,
            jobs=(),
            placements=(),
            failure=failure,
            message=message,
            tried=said.tried,
            loose=holds,
        )

    return _claim(state, claim, {Phase.CLAIMING, Phase.WAITING, Phase.MAKING, Phase.LIVE}, change)


def start_key(replica: Replica, job: Job) -> str:
    """The key of the command that starts this job."""
    return f"start {replica.num}-{job.node}/{replica.submission}"


def _made(state: RunState, instance: UUID) -> RunState:
    def change(place: Placement) -> Placement:
        return place.but(fresh=False) if place.instance_id == instance else place

    return state.but(
        replicas=tuple(it.but(placements=tuple(change(place) for place in it.placements)) for it in state.replicas)
    )


def _withdrawn(state: RunState, claim: UUID) -> RunState:
    """The claim holds nothing any more; jobs that had not been started never will be."""

    def change(replica: Replica) -> Replica:
        if replica.phase in (Phase.WAITING, Phase.MAKING, Phase.LIVE):
            started = tuple(job for job in replica.jobs if job.started)
            return replica.but(phase=Phase.LIVE, jobs=started, loose=False)
        return replica.but(loose=False)

    return _claim(state, claim, set(Phase), change)


# --- jobs ---------------------------------------------------------------------------------------------------------

_ORDER = (JobStatus.SUBMITTED, JobStatus.PROVISIONING, JobStatus.PULLING, JobStatus.RUNNING, JobStatus.TERMINATING)


def _reported(state: RunState, event: JobReported) -> RunState:
    """Statuses only go forward, whatever order the news comes in."""

    def change(job: Job) -> Job:
        if job.over or event.status.final or _ORDER.index(event.status) <= _ORDER.index(job.status):
            return job
        return job.but(status=event.status, started=True)

    if event.run_id != state.policy.run_id:
        return state
    state = _job(state, event.replica, event.node, event.submission, change)
    return _ran(state, event) if event.status is JobStatus.RUNNING else state


def _ended(state: RunState, event: JobEnded) -> RunState:
    """The first end counts; the same end told again is only marked to be noted as heard.

    One that comes before its submission is known here (after a reset) is not: the sweep will tell it again.
    """

    def change(job: Job) -> Job:
        if job.over:
            return job
        return job.but(
            started=True,
            status=event.status,
            reason=event.reason,
            exit_status=event.exit_status,
            message=event.message,
            ended_at=event.at,
        )

    if event.run_id != state.policy.run_id:
        return state
    state = _job(state, event.replica, event.node, event.submission, change)
    if event.exit_status is not None:
        state = _ran(state, event)
    if any(_is_early(replica, event) for replica in state.replicas):
        return state
    heard = job_id(event.run_id, event.replica, event.node, event.submission)
    return state if heard in state.unheard else state.but(unheard=(*state.unheard, heard))


def _is_early(replica: Replica, event: JobEnded) -> bool:
    if replica.num != event.replica or event.submission < replica.submission or replica.phase is Phase.OVER:
        return False
    return event.submission > replica.submission or all(job.node != event.node for job in replica.jobs)


def _ran(state: RunState, event: JobReported | JobEnded) -> RunState:
    """A job ran: the backoff begins anew. An exit status says so too, whichever news comes first."""
    return _replica(state, event.replica, lambda it: it.but(pauses=0) if it.submission == event.submission else it)


# --- reaching one part --------------------------------------------------------------------------------------------


def _replica(state: RunState, num: int, change: Callable[[Replica], Replica]) -> RunState:
    return state.but(replicas=tuple(change(it) if it.num == num else it for it in state.replicas))


def _claim(state: RunState, claim: UUID, phases: set[Phase], change: Callable[[Replica], Replica]) -> RunState:
    return state.but(
        replicas=tuple(
            change(it) if it.phase in phases and state.claim_of(it) == claim else it for it in state.replicas
        )
    )


def _job(state: RunState, num: int, node: int, submission: int, change: Callable[[Job], Job]) -> RunState:
    def in_replica(replica: Replica) -> Replica:
        if replica.phase is not Phase.LIVE or replica.submission != submission:
            return replica
        return replica.but(jobs=tuple(change(job) if job.node == node else job for job in replica.jobs))

    return _replica(state, num, in_replica)
