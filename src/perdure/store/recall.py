"""What Postgres knows of a run's jobs, as news for a workflow that may have missed it."""

from __future__ import annotations

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from perdure.model.events import JobEnded, JobReported
from perdure.model.messages import CatchUp
from perdure.model.statuses import JobReason, JobStatus


async def news(tx: AsyncConnection, wanted: CatchUp) -> tuple[JobReported | JobEnded, ...]:
    """How each job stands: of one submission, or of the latest one of each job."""
    query = text("""
        SELECT DISTINCT ON (replica, node) * FROM jobs
        WHERE run_id = :run
          AND (CAST(:replica AS int) IS NULL OR replica = :replica)
          AND (CAST(:submission AS int) IS NULL OR submission = :submission)
        ORDER BY replica, node, submission DESC
    """)
    values = {"run": wanted.run_id, "replica": wanted.replica, "submission": wanted.submission}
    return tuple(_news(row) for row in await tx.execute(query, values))


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
