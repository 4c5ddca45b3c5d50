"""What a run can decide to do. Each command has a key: while that key is outstanding it is not given again."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from perdure.model.base import Message
from perdure.model.events import Placement
from perdure.model.statuses import JobReason, RetryEvent, RunReason, RunStatus


class Failure(Message):
    """Why a replica is to be tried again: decided once, by the first end that asks for it."""

    event: RetryEvent
    at: datetime
    message: str


def place_key(claim_id: UUID) -> str:
    return f"place {claim_id}"


class PlaceReplica(Message):
    """Claim instances for all nodes of a replica."""

    kind: Literal["place"] = "place"
    replica: int
    submission: int
    claim_id: UUID
    wait: bool
    keep: float = 0.0
    """Seconds that instances already made for it stay, if others cannot be had: until it would be claimed again."""

    @property
    def key(self) -> str:
        return place_key(self.claim_id)


class WithdrawClaim(Message):
    """Give back what a claim holds, or its place in the queue."""

    kind: Literal["withdraw"] = "withdraw"
    replica: int
    claim_id: UUID

    @property
    def key(self) -> str:
        return f"withdraw {self.claim_id}"


class MakeInstance(Message):
    """Start the workflow of an instance that a claim was granted and that does not exist yet."""

    kind: Literal["make"] = "make"
    replica: int
    placement: Placement

    @property
    def key(self) -> str:
        return f"make {self.placement.instance_id}"


class StartJob(Message):
    kind: Literal["start"] = "start"
    replica: int
    node: int
    submission: int
    claim_id: UUID
    placement: Placement
    addresses: tuple[str, ...]

    @property
    def key(self) -> str:
        return f"start {self.replica}-{self.node}/{self.submission}"


class StopJob(Message):
    kind: Literal["stop"] = "stop"
    replica: int
    node: int
    submission: int
    reason: JobReason
    abort: bool
    message: str = ""

    @property
    def key(self) -> str:
        return f"stop {self.replica}-{self.node}/{self.submission}{' now' if self.abort else ''}"


class Resubmit(Message):
    """A change of mind alone: this replica has failed in a way that is tried again."""

    kind: Literal["resubmit"] = "resubmit"
    replica: int
    failure: Failure


class Rest(Message):
    """A change of mind alone: pause, then claim again; ``next_submission`` if jobs had been started."""

    kind: Literal["rest"] = "rest"
    replica: int
    until: datetime
    next_submission: bool
    clock: datetime


class EndReplica(Message):
    """A change of mind alone: nothing more will be submitted for this replica."""

    kind: Literal["end_replica"] = "end_replica"
    replica: int


class ReadCalendar(Message):
    """Find the slots in ``(since, until]`` and the next one. ``why`` empty: the latest of them runs now, and older
    ones were missed; else all are skipped, for this reason."""

    kind: Literal["read_calendar"] = "read_calendar"
    since: datetime
    until: datetime
    why: str = ""

    @property
    def key(self) -> str:
        return READING


READING = "calendar"
"""One look at the calendar at a time."""


class BeginOccurrence(Message):
    """A change of mind alone: the schedule's slot, or (None) somebody's trigger, runs now."""

    kind: Literal["begin_occurrence"] = "begin_occurrence"
    slot: datetime | None
    at: datetime


class SkipSlot(Message):
    """A change of mind alone: the slot that is due does not run."""

    kind: Literal["skip_slot"] = "skip_slot"
    why: str
    at: datetime


class EndOccurrence(Message):
    """A change of mind alone: the occurrence is over, and the schedule goes on."""

    kind: Literal["end_occurrence"] = "end_occurrence"
    reason: RunReason
    message: str
    at: datetime


class EndRun(Message):
    """A change of mind alone: the run ends, for this reason."""

    kind: Literal["end_run"] = "end_run"
    reason: RunReason
    message: str = ""


class Close(Message):
    """Nothing is left to do: close the workflow."""

    kind: Literal["close"] = "close"
    status: RunStatus
    reason: RunReason
    message: str = ""


Act = PlaceReplica | WithdrawClaim | MakeInstance | StartJob | StopJob | ReadCalendar
"""Commands that something outside must carry out."""

Mind = Resubmit | Rest | EndReplica | EndRun | BeginOccurrence | SkipSlot | EndOccurrence
"""Commands that only change the state."""

Command = Annotated[
    PlaceReplica
    | WithdrawClaim
    | MakeInstance
    | StartJob
    | StopJob
    | ReadCalendar
    | Resubmit
    | Rest
    | EndReplica
    | EndRun
    | BeginOccurrence
    | SkipSlot
    | EndOccurrence
    | Close,
    Field(discriminator="kind"),
]


class Decision(Message):
    commands: tuple[Command, ...] = ()
    wake_at: datetime | None = None
    """When to decide again if nothing happens before."""

    why: str = ""
    """What the timer is for, in words."""
