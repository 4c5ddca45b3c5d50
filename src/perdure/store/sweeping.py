"""What the sweep looks at: every row that somebody ought to be minding, and for how long nothing happened to it.

``age`` is in seconds since the row last moved, by the database's clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from perdure.model.ids import run_workflow_id
from perdure.model.messages import JobKey
from perdure.model.statuses import ClaimStatus, InstanceStatus, JobReason, JobStatus


@dataclass(frozen=True)
class MindedInstance:
    instance_id: UUID
    name: str
    project: str
    status: InstanceStatus
    age: float


@dataclass(frozen=True)
class MindedRun:
    """A run whose row is not final, or which still holds something."""

    run_id: UUID
    workflow_id: str
    ended: bool
    superseded: bool
    """A later run has its name, so that its own workflow is gone for certain."""

    age: float


@dataclass(frozen=True)
class MindedClaim:
    claim_id: UUID
    run_id: UUID
    owner: str
    status: ClaimStatus
    age: float
    ended_at: datetime | None
    jobs: int
    """Submissions that were started on it."""

    unmade: int
    """Of its instances, those that nobody has asked a provider for."""

    nodes: int

    @property
    def untold(self) -> bool:
        """Its run has done nothing with it. (Instances that are being made take their time.)"""
        if self.status is ClaimStatus.GRANTED:
            return self.unmade > 0
        return self.status is ClaimStatus.FAILED or (self.status is ClaimStatus.READY and not self.jobs)


@dataclass(frozen=True)
class MindedJob:
    """A job that has not ended, or whose run has not heard of its end."""

    key: JobKey
    owner: str
    claim_id: UUID
    instance_id: UUID
    status: JobStatus
    reason: JobReason | None
    exit_status: int | None
    message: str
    ended_at: datetime | None
    age: float


@dataclass(frozen=True)
class Quarantine:
    """A lost job whose blocks wait until its host is heard from and clean."""

    instance_id: UUID
    job_id: UUID


async def instances(tx: AsyncConnection) -> list[MindedInstance]:
    query = text("""
        SELECT i.id, i.name, p.name AS project, i.status, extract(epoch FROM now() - i.created_at)::float8 AS age
        FROM instances i JOIN projects p ON p.id = i.project_id
        WHERE i.status <> 'terminated' ORDER BY i.id
    """)
    return [
        MindedInstance(row.id, row.name, row.project, InstanceStatus(row.status), row.age)
        for row in await tx.execute(query)
    ]


async def runs(tx: AsyncConnection) -> list[MindedRun]:
    query = text("""
        SELECT r.id, r.name, p.name AS project, r.ended_at IS NOT NULL AS ended,
               r.superseded_by IS NOT NULL AS superseded,
               extract(epoch FROM now() - r.recorded_at)::float8 AS age
        FROM runs r JOIN projects p ON p.id = r.project_id
        WHERE r.ended_at IS NULL
           OR EXISTS (SELECT 1 FROM claims c WHERE c.run_id = r.id AND c.status IN ('waiting', 'granted', 'ready'))
           OR EXISTS (SELECT 1 FROM jobs j WHERE j.run_id = r.id AND j.ended_at IS NULL)
        ORDER BY r.id
    """)
    return [
        MindedRun(row.id, run_workflow_id(row.project, row.name), row.ended, row.superseded, row.age)
        for row in await tx.execute(query)
    ]


async def claims(tx: AsyncConnection) -> list[MindedClaim]:
    """Those that hold or wait, and those that failed without anything after them."""
    query = text("""
        SELECT c.id, c.run_id, c.owner, c.status, c.ended_at, c.nodes,
               extract(epoch FROM now() - coalesce(c.ended_at, c.granted_at, c.queued_at))::float8 AS age,
               (SELECT count(*) FROM jobs j WHERE j.claim_id = c.id) AS jobs,
               (SELECT count(*) FROM holdings h JOIN instances i ON i.id = h.instance_id
                WHERE h.claim_id = c.id AND i.status = 'pending') AS unmade
        FROM claims c JOIN runs r ON r.id = c.run_id
        WHERE c.status IN ('waiting', 'granted', 'ready')
           OR (c.status = 'failed' AND r.ended_at IS NULL AND NOT EXISTS (
                SELECT 1 FROM claims later WHERE later.run_id = c.run_id AND later.replica = c.replica
                AND later.queued_at > c.queued_at))
        ORDER BY c.id
    """)
    return [
        MindedClaim(
            claim_id=row.id,
            run_id=row.run_id,
            owner=row.owner,
            status=ClaimStatus(row.status),
            age=row.age,
            ended_at=row.ended_at,
            jobs=row.jobs,
            unmade=row.unmade,
            nodes=row.nodes,
        )
        for row in await tx.execute(query)
    ]


async def open_claims(tx: AsyncConnection, run_id: UUID) -> list[UUID]:
    """What a run waits for or holds."""
    query = text("""
        SELECT id FROM claims WHERE run_id = :run AND status IN ('waiting', 'granted', 'ready') ORDER BY id
    """)
    return [row.id for row in await tx.execute(query, {"run": run_id})]


async def is_open(tx: AsyncConnection, run_id: UUID) -> bool:
    """Whether the run's row is still not final."""
    query = text("SELECT 1 FROM runs WHERE id = :id AND ended_at IS NULL")
    return (await tx.execute(query, {"id": run_id})).one_or_none() is not None


async def instance_is_living(tx: AsyncConnection, instance_id: UUID) -> bool:
    query = text("SELECT 1 FROM instances WHERE id = :id AND status <> 'terminated'")
    return (await tx.execute(query, {"id": instance_id})).one_or_none() is not None


_JOBS = """
    SELECT j.*, r.name AS run_name, p.name AS project,
           extract(epoch FROM now() - coalesce(j.ended_at, j.started_at, j.submitted_at))::float8 AS age
    FROM jobs j JOIN runs r ON r.id = j.run_id JOIN projects p ON p.id = r.project_id
"""


async def living_jobs(tx: AsyncConnection, run_id: UUID | None = None) -> list[MindedJob]:
    """Those that have not ended: of one run, or all."""
    query = _JOBS + "WHERE j.ended_at IS NULL AND (CAST(:run AS uuid) IS NULL OR j.run_id = :run) ORDER BY j.id"
    return [_job(row) for row in await tx.execute(text(query), {"run": run_id})]


async def unheard_jobs(tx: AsyncConnection) -> list[MindedJob]:
    """Ended jobs of runs that have not ended, and have not said that they know."""
    query = _JOBS + "WHERE j.ended_at IS NOT NULL AND NOT j.heard AND r.ended_at IS NULL ORDER BY j.id"
    return [_job(row) for row in await tx.execute(text(query))]


async def job_is_living(tx: AsyncConnection, job_id: UUID) -> bool:
    query = text("SELECT 1 FROM jobs WHERE id = :id AND ended_at IS NULL")
    return (await tx.execute(query, {"id": job_id})).one_or_none() is not None


async def has_living_jobs(tx: AsyncConnection, instance_id: UUID) -> bool:
    query = text("SELECT 1 FROM jobs WHERE instance_id = :id AND ended_at IS NULL LIMIT 1")
    return (await tx.execute(query, {"id": instance_id})).one_or_none() is not None


async def quarantined(tx: AsyncConnection) -> list[Quarantine]:
    query = text("""
        SELECT DISTINCT instance_id, quarantined_job FROM holdings
        WHERE quarantined_at IS NOT NULL AND quarantined_job IS NOT NULL ORDER BY instance_id, quarantined_job
    """)
    return [Quarantine(row.instance_id, row.quarantined_job) for row in await tx.execute(query)]


def _job(row: Row[Any]) -> MindedJob:
    return MindedJob(
        key=JobKey(run_id=row.run_id, job_id=row.id, replica=row.replica, node=row.node, submission=row.submission),
        owner=run_workflow_id(row.project, row.run_name),
        claim_id=row.claim_id,
        instance_id=row.instance_id,
        status=JobStatus(row.status),
        reason=JobReason(row.reason) if row.reason else None,
        exit_status=row.exit_status,
        message=row.message,
        ended_at=row.ended_at,
        age=row.age,
    )


async def projects_that_wait(tx: AsyncConnection) -> list[UUID]:
    """Those with a claim in their queue."""
    query = text("SELECT DISTINCT project_id FROM claims WHERE status = 'waiting' ORDER BY 1")
    return list((await tx.execute(query)).scalars())
