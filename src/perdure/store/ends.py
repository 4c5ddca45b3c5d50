"""A job's end: decided once, with the release of its blocks, in one transaction."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from perdure.core.allocation import Offers
from perdure.model.events import JobEnded, Nudge
from perdure.model.messages import JobEnd
from perdure.model.statuses import JobReason, JobStatus
from perdure.store import claims, lives, projects, releases

_END = text("""
    WITH ended AS (
        INSERT INTO jobs (id, run_id, replica, node, submission, claim_id, instance_id, status, reason, exit_status,
                          message, working_dir, username, log_bytes, log_complete, heard, submitted_at, ended_at)
        VALUES (:id, :run, :replica, :node, :submission, :claim, :instance, :status, :reason, :exit_status,
                :message, '', '', 0, false, false, :at, :at)
        ON CONFLICT (id) DO UPDATE SET
            status = EXCLUDED.status, reason = EXCLUDED.reason, exit_status = EXCLUDED.exit_status,
            message = EXCLUDED.message, ended_at = EXCLUDED.ended_at
        WHERE jobs.ended_at IS NULL
        RETURNING id
    ), unwatched AS (
        DELETE FROM watches WHERE job_id IN (SELECT id FROM ended)
    )
    SELECT id FROM ended
""")

_QUARANTINE = text("""
    UPDATE holdings SET quarantined_at = now(), quarantined_job = :job
    WHERE claim_id = :claim AND node = :node AND quarantined_at IS NULL
""")


async def end_job(tx: AsyncConnection, end: JobEnd, offers: Offers) -> tuple[Nudge, ...]:
    """Write how a job ended, give back its blocks, and grant them to whoever waits.

    An end that is written already stays as it is. ``quarantine``: the blocks stay held, by nobody, until the host
    is heard from and clean. ``instance_gone``: it is lost, for all who have a part of it.
    First of the nudges is the one to the job's run.
    """
    project_id = await _lock_project(tx, end.key.run_id)
    if project_id is None:
        return (Nudge(workflow_id=end.owner, news=_news(end)),)
    if (await tx.execute(_END, _values(end))).one_or_none() is None:
        written = (await tx.execute(text("SELECT * FROM jobs WHERE id = :id"), {"id": end.key.job_id})).one()
        return (Nudge(workflow_id=end.owner, news=_written(written)), *await claims.untold(tx, project_id))
    nudges = (Nudge(workflow_id=end.owner, news=_news(end)),)
    if end.quarantine and not end.instance_gone:
        values = {"claim": end.claim_id, "node": end.key.node, "job": end.key.job_id}
        await tx.execute(_QUARANTINE, values)
        return nudges
    released = await releases.release(tx, end.claim_id, node=end.key.node)
    if end.instance_gone:
        nudges += await lives.vanished(tx, end.instance_id, end.message or "its instance is gone", offers)
    return nudges + await releases.hand_on(tx, project_id, released.doubtful, offers)


async def lift_quarantine(tx: AsyncConnection, job_id: UUID, offers: Offers) -> tuple[Nudge, ...]:
    """The host of a lost job was heard from, and nothing of the job is left on it: its blocks are free again."""
    query = text("""
        SELECT i.project_id, h.claim_id, h.node FROM holdings h JOIN instances i ON i.id = h.instance_id
        WHERE h.quarantined_job = :job LIMIT 1
    """)
    row = (await tx.execute(query, {"job": job_id})).one_or_none()
    if row is None:
        return ()
    await projects.lock(tx, row.project_id)
    lift = text("UPDATE holdings SET quarantined_at = NULL, quarantined_job = NULL WHERE quarantined_job = :job")
    await tx.execute(lift, {"job": job_id})
    released = await releases.release(tx, row.claim_id, node=row.node)
    return await releases.hand_on(tx, row.project_id, released.doubtful, offers)


async def _lock_project(tx: AsyncConnection, run_id: UUID) -> UUID | None:
    query = text(
        "SELECT p.id FROM projects p JOIN runs r ON r.project_id = p.id WHERE r.id = :run FOR NO KEY UPDATE OF p"
    )
    return (await tx.execute(query, {"run": run_id})).scalar()


def _values(end: JobEnd) -> dict[str, Any]:
    return {
        "id": end.key.job_id,
        "run": end.key.run_id,
        "replica": end.key.replica,
        "node": end.key.node,
        "submission": end.key.submission,
        "claim": end.claim_id,
        "instance": end.instance_id,
        "status": end.status.value,
        "reason": end.reason.value,
        "exit_status": end.exit_status,
        "message": end.message,
        "at": end.at,
    }


def _news(end: JobEnd) -> JobEnded:
    return JobEnded(
        run_id=end.key.run_id,
        replica=end.key.replica,
        node=end.key.node,
        submission=end.key.submission,
        status=end.status,
        reason=end.reason,
        exit_status=end.exit_status,
        message=end.message,
        at=end.at,
    )


def _written(row: Row[Any]) -> JobEnded:
    return JobEnded(
        run_id=row.run_id,
        replica=row.replica,
        node=row.node,
        submission=row.submission,
        status=JobStatus(row.status),
        reason=JobReason(row.reason),
        exit_status=row.exit_status,
        message=row.message,
        at=row.ended_at,
    )
