"""What the story of a run is told from: rows, and the times at which they changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from perdure.model.policy import RunPolicy
from perdure.model.resources import OfferFailure
from perdure.model.statuses import ClaimStatus, InstanceReason, JobReason, JobStatus, RunReason, RunStatus


@dataclass(frozen=True)
class Place:
    """An instance that a claim was granted."""

    instance_id: UUID
    name: str
    new: bool
    """It was to be made."""


@dataclass(frozen=True)
class Instance:
    name: str
    failures: tuple[OfferFailure, ...] = ()
    reason: InstanceReason | None = None
    message: str = ""


@dataclass(frozen=True)
class Claim:
    """One wish for all nodes of a replica. ``moved``: when it first reached each status."""

    replica: int
    submission: int
    nodes: int
    status: ClaimStatus
    queued_at: datetime
    message: str = ""
    tried: tuple[OfferFailure, ...] = ()
    moved: Mapping[ClaimStatus, datetime] = field(default_factory=dict[ClaimStatus, datetime])
    places: tuple[Place, ...] = ()
    ahead: int = 0
    """Claims that wait in front of it."""

    @property
    def granted_at(self) -> datetime | None:
        return self.moved.get(ClaimStatus.GRANTED) or self.moved.get(ClaimStatus.READY)

    @property
    def ended_at(self) -> datetime | None:
        """When it was refused, or could not be kept."""
        return self.moved.get(ClaimStatus.REFUSED) or self.moved.get(ClaimStatus.FAILED)


@dataclass(frozen=True)
class Job:
    """One submission of one job. ``moved``: when it first reached each status."""

    replica: int
    node: int
    submission: int
    status: JobStatus
    submitted_at: datetime
    instance: str = ""
    reason: JobReason | None = None
    exit_status: int | None = None
    message: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    moved: Mapping[JobStatus, datetime] = field(default_factory=dict[JobStatus, datetime])


@dataclass(frozen=True)
class Facts:
    """All of one run."""

    policy: RunPolicy
    status: RunStatus
    reason: RunReason | None = None
    message: str = ""
    ended_at: datetime | None = None
    ending_at: datetime | None = None
    """Since when its end is decided."""

    superseded: bool = False
    max_duration: float | None = None
    """Seconds that each job may run."""

    claims: tuple[Claim, ...] = ()
    """Oldest first."""

    jobs: tuple[Job, ...] = ()
    instances: Mapping[UUID, Instance] = field(default_factory=dict[UUID, Instance])
