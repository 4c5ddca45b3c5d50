"""What a run remembers, and what can happen to it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from perdure.core.run.commands import Command, Failure
from perdure.model.base import Message
from perdure.model.events import ClaimFailed, ClaimGranted, JobEnded, JobReported, Placement, StopWanted
from perdure.model.ids import claim_id
from perdure.model.messages import ClaimAnswer, Progress
from perdure.model.policy import RunPolicy
from perdure.model.resources import OfferFailure
from perdure.model.statuses import JobReason, JobStatus, RunReason

RULES_VERSION = 1
"""Of the rules a new run starts with. A run keeps the version it began with."""


class Phase(StrEnum):
    """Where one replica is; see the package's drawing."""

    RESTING = "resting"
    CLAIMING = "claiming"
    WAITING = "waiting"
    MAKING = "making"
    LIVE = "live"
    OVER = "over"


class Stop(StrEnum):
    """How hard a job, or a run, has been asked to end."""

    NO = "no"
    GRACEFUL = "graceful"
    ABORT = "abort"


class Job(Message):
    """One node of the current submission."""

    node: int
    placement: Placement
    started: bool = False
    """Its workflow has been started, or found started."""

    status: JobStatus = JobStatus.SUBMITTED
    reason: JobReason | None = None
    exit_status: int | None = None
    message: str = ""
    ended_at: datetime | None = None
    stop: Stop = Stop.NO

    @property
    def over(self) -> bool:
        return self.status.final


class Replica(Message):
    num: int
    phase: Phase = Phase.RESTING
    submission: int = 0
    attempt: int = 0
    """Claims made for this submission."""

    pauses: int = 0
    """Backoffs taken since something last ran."""

    not_before: datetime | None = None
    """While resting: when to claim again; None is now."""

    clock: datetime
    """Where the window of a no-capacity retry began."""

    placements: tuple[Placement, ...] = ()
    jobs: tuple[Job, ...] = ()
    failure: Failure | None = None
    message: str = ""
    tried: tuple[OfferFailure, ...] = ()
    loose: bool = False
    """The claim holds blocks that no job will release."""

    found: bool = False
    """Its claim was made before, by an execution that a Temporal reset has ended: ask first how it stands."""


class RunState(Message):
    """All a run knows: carried through continue-as-new, and the whole input of every decision."""

    rules_version: int = RULES_VERSION
    policy: RunPolicy
    replicas: tuple[Replica, ...]
    ending: RunReason | None = None
    ending_message: str = ""
    stop: Stop = Stop.NO
    outstanding: frozenset[str] = frozenset()
    """Keys of commands under way."""

    unheard: tuple[UUID, ...] = ()
    """Jobs whose end was heard and is not yet marked so in Postgres."""

    def claim_of(self, replica: Replica) -> UUID:
        return claim_id(self.policy.run_id, replica.num, replica.submission, replica.attempt)


def new_run(policy: RunPolicy, progress: tuple[Progress, ...] = ()) -> RunState:
    """A run at its beginning; or, after a Temporal reset, where Postgres says that it was."""
    known = {it.replica: it for it in progress}
    replicas = tuple(_replica(num, policy, known.get(num)) for num in range(policy.replicas))
    return RunState(policy=policy, replicas=replicas)


def _replica(num: int, policy: RunPolicy, known: Progress | None) -> Replica:
    if known is None:
        return Replica(num=num, clock=policy.submitted_at)
    return Replica(
        num=num,
        submission=known.submission,
        attempt=known.attempt,
        pauses=known.attempt + (1 if known.submission else 0),
        clock=known.clock or policy.submitted_at,
        found=True,
    )


# --- what can happen, beyond the news that other workflows bring --------------------------------------------------


class Issued(Message):
    """A command is being carried out (or, for a change of mind alone, has been)."""

    command: Command


class Placed(Message):
    """The answer to PlaceReplica. ``known``: what Postgres already knew of the jobs that were started on this
    claim, if it had been answered before (after a Temporal reset)."""

    claim_id: UUID
    answer: ClaimAnswer
    at: datetime
    known: tuple[JobReported | JobEnded, ...] = ()


class Withdrawn(Message):
    claim_id: UUID
    key: str


class Made(Message):
    """An instance's workflow runs."""

    instance_id: UUID
    key: str


class Started(Message):
    """A job's workflow has started, or was found started. ``known`` as in Placed."""

    replica: int
    node: int
    submission: int
    key: str
    known: tuple[JobReported | JobEnded, ...] = ()


class Stopped(Message):
    """A job has been told to stop, or was found closed. ``known`` as in Placed."""

    key: str
    known: tuple[JobReported | JobEnded, ...] = ()


class Heard(Message):
    """These ends are marked as heard in Postgres."""

    jobs: tuple[UUID, ...]


Event = (
    ClaimGranted
    | ClaimFailed
    | JobReported
    | JobEnded
    | StopWanted
    | Issued
    | Placed
    | Withdrawn
    | Made
    | Started
    | Stopped
    | Heard
)
