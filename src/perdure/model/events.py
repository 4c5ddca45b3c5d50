"""What workflows tell one another, each a row in Postgres first: a lost signal is told again by the sweep.

Every message says which run (by UUID) it is about; one that does not match is dropped by whoever gets it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from perdure.model.base import Message
from perdure.model.resources import OfferFailure
from perdure.model.statuses import JobReason, JobStatus


class Placement(Message):
    """The instance that one node of a claim is on."""

    node: int
    instance_id: UUID
    instance_name: str = ""
    fresh: bool = False
    """Still to be made: whoever hears of the grant starts its workflow."""

    address: str | None = None
    """How other nodes reach it (an IP); None until it is ready."""

    backend: str = ""
    price: float = 0.0


class ClaimGranted(Message):
    kind: Literal["claim_granted"] = "claim_granted"
    run_id: UUID
    claim_id: UUID
    placements: tuple[Placement, ...]
    ready: bool = False
    """Every placement has its address."""


class ClaimFailed(Message):
    """An instance of it could not be had, or the claim was refused while waiting. It holds nothing any more."""

    kind: Literal["claim_failed"] = "claim_failed"
    run_id: UUID
    claim_id: UUID
    at: datetime
    message: str
    tried: tuple[OfferFailure, ...] = ()


class JobReported(Message):
    """A job reached a status that is not final."""

    kind: Literal["job_reported"] = "job_reported"
    run_id: UUID
    replica: int
    node: int
    submission: int
    status: JobStatus
    at: datetime


class JobEnded(Message):
    """A job's end, decided once; its instance is already released."""

    kind: Literal["job_ended"] = "job_ended"
    run_id: UUID
    replica: int
    node: int
    submission: int
    status: JobStatus
    reason: JobReason
    exit_status: int | None = None
    message: str = ""
    at: datetime


class StopWanted(Message):
    """Somebody wants a run to end. ``cause``: ``signal``, ``update`` or ``cancel`` (Temporal's)."""

    kind: Literal["stop_wanted"] = "stop_wanted"
    abort: bool = False
    occurrence: bool = False
    """Only the present occurrence of a schedule; the schedule goes on."""

    by: str = ""
    cause: str = "signal"


class TriggerWanted(Message):
    """Somebody wants an occurrence of a schedule now."""

    kind: Literal["trigger_wanted"] = "trigger_wanted"
    by: str = ""
    at: datetime


class PauseWanted(Message):
    """Somebody wants a schedule to pause, or (``on`` false) to go on."""

    kind: Literal["pause_wanted"] = "pause_wanted"
    on: bool
    by: str = ""
    at: datetime


class JobStop(Message):
    """To a job: end, for this reason. ``abort`` kills at once."""

    kind: Literal["job_stop"] = "job_stop"
    reason: JobReason
    abort: bool = False
    message: str = ""


class InstanceStop(Message):
    """To an instance: its row has changed; look. It is to be terminated, or its idle time has begun."""

    kind: Literal["instance_stop"] = "instance_stop"


class FleetChanged(Message):
    """To a fleet: its row has changed; look."""

    kind: Literal["fleet_changed"] = "fleet_changed"


RunNews = Annotated[ClaimGranted | ClaimFailed | JobReported | JobEnded | StopWanted, Field(discriminator="kind")]
"""What the ``tell`` signal of a RunWorkflow takes."""

Told = Annotated[
    ClaimGranted | ClaimFailed | JobReported | JobEnded | JobStop | InstanceStop | FleetChanged,
    Field(discriminator="kind"),
]


class Nudge(Message):
    """Whom to tell what. Returned by the transaction that made it true; sent by the workflow that ran it."""

    workflow_id: str
    news: Told
