"""What a run remembers, and what can happen to it."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from perdure.core.run.commands import Command, Failure, ReadCalendar
from perdure.model.base import Message
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
from perdure.model.ids import claim_id
from perdure.model.messages import CalendarPage, ClaimAnswer, Note, Progress
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
    first: int = 0
    """The first submission of this occurrence, if the run has a schedule."""

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


class Occurrence(Message):
    """One time that a schedule's run happens."""

    number: int
    """From 1."""

    words: str
    """Its slot, or who triggered it."""


class Shut(Message):
    """Slots up to this moment do not run, for this reason."""

    until: datetime
    why: str


class Calendar(Message):
    """How a schedule stands. Each slot up to ``seen`` has run, is ``due``, or is noted as skipped."""

    seen: datetime
    next: datetime | None = None
    next_words: str = ""
    known: bool = False
    """``next`` is: None means that there is none."""

    due: datetime | None = None
    due_words: str = ""
    shut: tuple[Shut, ...] = ()
    paused: bool = False
    triggered: str = ""
    """By whom, if an occurrence is wanted now."""

    occurrence: Occurrence | None = None
    count: int = 0
    stop: Stop = Stop.NO
    """Of the present occurrence."""

    last: str = ""
    """How the latest occurrence ended."""

    def may_have_slot(self, until: datetime) -> bool:
        """Whether a slot can be in ``(seen, until]``."""
        return until > self.seen and (not self.known or (self.next is not None and self.next <= until))


class RunState(Message):
    """All a run knows: carried through continue-as-new, and the whole input of every decision."""

    rules_version: int = RULES_VERSION
    policy: RunPolicy
    replicas: tuple[Replica, ...]
    ending: RunReason | None = None
    ending_message: str = ""
    stop: Stop = Stop.NO
    stopped_by: str = ""
    """Who asked for the stop that holds, if that is known."""

    outstanding: frozenset[str] = frozenset()
    """Keys of commands under way."""

    unheard: tuple[UUID, ...] = ()
    """Jobs whose end was heard and is not yet marked so in Postgres."""

    calendar: Calendar | None = None
    """Of a run with a schedule."""

    notes: tuple[Note, ...] = ()
    """To be written to Postgres."""

    noted: int = 0
    """Notes made so far."""

    @property
    def idle(self) -> bool:
        """It has a schedule, and no occurrence of it is under way."""
        return self.calendar is not None and self.calendar.occurrence is None

    @property
    def stopping(self) -> Stop:
        """How hard what runs now has been asked to end."""
        levels = (self.stop, self.calendar.stop if self.calendar else Stop.NO)
        return next((level for level in (Stop.ABORT, Stop.GRACEFUL) if level in levels), Stop.NO)

    def noting(self, at: datetime, text: str) -> RunState:
        """With a note more."""
        number = self.noted + 1
        return self.but(notes=(*self.notes, Note(number=number, at=at, text=text)), noted=number)

    def claim_of(self, replica: Replica) -> UUID:
        return claim_id(self.policy.run_id, replica.num, replica.submission, replica.attempt)


def new_run(policy: RunPolicy, progress: tuple[Progress, ...] = (), now: datetime | None = None) -> RunState:
    """A run at its beginning; or, after a Temporal reset (which is ``now``), where Postgres says that it was."""
    known = {it.replica: it for it in progress}
    replicas = tuple(_replica(num, policy, known.get(num)) for num in range(policy.replicas))
    return RunState(policy=policy, replicas=replicas, calendar=_calendar(policy, progress, now))


def _calendar(policy: RunPolicy, progress: tuple[Progress, ...], now: datetime | None) -> Calendar | None:
    """After a reset, the latest occurrence is looked at again, and slots before that moment are not."""
    if policy.schedule is None:
        return None
    if not progress:
        return Calendar(seen=policy.submitted_at)
    again = Occurrence(number=1, words="before a reset")
    return Calendar(seen=now or policy.submitted_at, occurrence=again, count=1)


def _replica(num: int, policy: RunPolicy, known: Progress | None) -> Replica:
    if known is None:
        phase = Phase.RESTING if policy.schedule is None else Phase.OVER
        return Replica(num=num, phase=phase, clock=policy.submitted_at)
    return Replica(
        num=num,
        submission=known.submission,
        first=known.submission if policy.schedule else 0,
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


class CalendarRead(Message):
    """The answer to ReadCalendar."""

    question: ReadCalendar
    page: CalendarPage
    at: datetime


class Noted(Message):
    """Notes up to this number are written."""

    number: int


class Heard(Message):
    """These ends are marked as heard in Postgres."""

    jobs: tuple[UUID, ...]


Event = (
    ClaimGranted
    | ClaimFailed
    | JobReported
    | JobEnded
    | StopWanted
    | TriggerWanted
    | PauseWanted
    | Issued
    | Placed
    | Withdrawn
    | Made
    | Started
    | Stopped
    | Heard
    | CalendarRead
    | Noted
)
