"""What Postgres knows of a run's jobs, as news for a workflow that may have missed it."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from perdure.model.events import JobEnded, JobReported
from perdure.model.messages import CatchUp, Progress
from perdure.model.statuses import JobReason, JobStatus


async def news(tx: AsyncConnection, wanted: CatchUp) -> tuple[JobReported | JobEnded, ...]:
    """How each job stands: of one submission, or claim, or of the latest one of each job."""
    query = text("""
        SELECT DISTINCT ON (replica, node) * FROM jobs
        WHERE run_id = :run
          AND (CAST(:replica AS int) IS NULL OR replica = :replica)
          AND (CAST(:submission AS int) IS NULL OR submission = :submission)
          AND (CAST(:claim AS uuid) IS NULL OR claim_id = :claim)
        ORDER BY replica, node, submission DESC
    """)
    values = {
        "run": wanted.run_id,
        "replica": wanted.replica,
        "submission": wanted.submission,
        "claim": wanted.claim_id,
    }
    return tuple(_news(row) for row in await tx.execute(query, values))


async def progress(tx: AsyncConnection, run_id: UUID) -> tuple[Progress, ...]:
    """The latest claim of each replica: one row is made an attempt."""
    query = text("""
        SELECT DISTINCT ON (c.replica) c.replica, c.submission,
               count(*) OVER (PARTITION BY c.replica, c.submission) - 1 AS attempt,
               (SELECT min(j.ended_at) FROM jobs j
                WHERE j.run_id = c.run_id AND j.replica = c.replica AND j.submission = c.submission - 1
                  AND j.status = 'failed') AS clock
        FROM claims c WHERE c.run_id = :run ORDER BY c.replica, c.submission DESC
    """)
    return tuple(
        Progress(replica=row.replica, submission=row.submission, attempt=row.attempt, clock=row.clock)
        for row in await tx.execute(query, {"run": run_id})
    )


def _news(row: Row[tuple[object, ...]]) -> JobReported | JobEnded:
    status = JobStatus(row.status)
    if not status.final or row.reason is None:
        return JobReported(
            run_id=row.run_id,
            replica=row.replica,
            node=row.node,
            submission=row.submission,
            status=status,
            at=row.started_at or row.submitted_at,
        )
    return JobEnded(
        run_id=row.run_id,
        replica=row.replica,
        node=row.node,
        submission=row.submission,
        status=status,
        reason=JobReason(row.reason),
        exit_status=row.exit_status,
        message=row.message,
        at=row.ended_at,
    )
