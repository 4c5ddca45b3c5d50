"""Jobs: the projection of each submission, its log's offset of record, and who watches it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from sqlalchemy import bindparam, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from perdure.model.errors import NotFound
from perdure.model.messages import JobKey, JobRecord
from perdure.model.statuses import JobReason, JobStatus
from perdure.spec.effective import EffectiveRun

LOG_CHANNEL = "perdure_log"
"""Of NOTIFY: the payload is the id of a job whose log has grown or is complete."""

_ORDER = [JobStatus.SUBMITTED, JobStatus.PROVISIONING, JobStatus.PULLING, JobStatus.RUNNING, JobStatus.TERMINATING]


@dataclass(frozen=True)
class JobContext:
    """What a step of a job works with."""

    key: JobKey
    effective: EffectiveRun
    claim_id: UUID
    instance_id: UUID
    status: JobStatus
    reason: JobReason | None
    blocks: int
    """Of its instance, that it holds; 0 when it was released."""

    total_blocks: int
    log_bytes: int
    log_complete: bool


async def load(tx: AsyncConnection, job_id: UUID) -> JobContext:
    """Raises: NotFound."""
    query = text("""
        SELECT j.*, r.spec, i.total_blocks,
               (SELECT count(*) FROM holdings h
                WHERE h.claim_id = j.claim_id AND h.node = j.node AND h.instance_id = j.instance_id) AS blocks
        FROM jobs j JOIN runs r ON r.id = j.run_id LEFT JOIN instances i ON i.id = j.instance_id
        WHERE j.id = :id
    """)
    row = (await tx.execute(query, {"id": job_id})).one_or_none()
    if row is None:
        raise NotFound(f"there is no job {job_id}")
    return JobContext(
        key=JobKey(run_id=row.run_id, job_id=row.id, replica=row.replica, node=row.node, submission=row.submission),
        effective=EffectiveRun.model_validate(row.spec),
        claim_id=row.claim_id,
        instance_id=row.instance_id,
        status=JobStatus(row.status),
        reason=JobReason(row.reason) if row.reason else None,
        blocks=row.blocks,
        total_blocks=row.total_blocks or 1,
        log_bytes=row.log_bytes,
        log_complete=row.log_complete,
    )


async def record(tx: AsyncConnection, job: JobRecord) -> None:
    """Insert a job, or move it on. A status is never taken back, so that a repeated step does no harm."""
    query = text("""
        INSERT INTO jobs (id, run_id, replica, node, submission, claim_id, instance_id, status,
                          message, working_dir, username, log_bytes, log_complete, heard, submitted_at, started_at)
        VALUES (:id, :run, :replica, :node, :submission, :claim, :instance, :status,
                '', '', '', 0, false, false, :at, CASE WHEN :running THEN CAST(:at AS timestamptz) END)
        ON CONFLICT (id) DO UPDATE SET
            status = EXCLUDED.status, started_at = coalesce(jobs.started_at, EXCLUDED.started_at)
        WHERE jobs.status = ANY(:before)
    """)
    values = {
        "id": job.key.job_id,
        "run": job.key.run_id,
        "replica": job.key.replica,
        "node": job.key.node,
        "submission": job.key.submission,
        "claim": job.claim_id,
        "instance": job.instance_id,
        "status": job.status.value,
        "running": job.status is JobStatus.RUNNING,
        "at": job.at,
        "before": [status.value for status in _ORDER[: _ORDER.index(job.status)]],
    }
    await tx.execute(query, values)


async def set_status(tx: AsyncConnection, job_id: UUID, status: JobStatus, expected: Sequence[JobStatus]) -> bool:
    """Move a job on, if it is where the caller believes; says whether it was."""
    query = text("""
        UPDATE jobs SET status = :status,
               started_at = CASE WHEN :running THEN coalesce(started_at, now()) ELSE started_at END
        WHERE id = :id AND status = ANY(:expected)
    """)
    values = {
        "id": job_id,
        "status": status.value,
        "running": status is JobStatus.RUNNING,
        "expected": [one.value for one in expected],
    }
    return (await tx.execute(query, values)).rowcount == 1


async def set_started(
    tx: AsyncConnection, job_id: UUID, working_dir: str, username: str, ports: Sequence[tuple[int, int]]
) -> None:
    """Where it runs, as whom, and its ports as (in the job, on its host)."""
    query = text(
        "UPDATE jobs SET working_dir = :folder, username = :username, ports = :ports WHERE id = :id"
    ).bindparams(bindparam("ports", type_=JSONB))
    values = {"id": job_id, "folder": working_dir, "username": username, "ports": [list(pair) for pair in ports]}
    await tx.execute(query, values)


async def set_pull(tx: AsyncConnection, job_id: UUID, done: int, total: int) -> None:
    """Bytes of the image pulled so far, and in all."""
    query = text("UPDATE jobs SET pull_done = :done, pull_total = :total WHERE id = :id")
    await tx.execute(query, {"id": job_id, "done": done, "total": total})


async def commit_log(tx: AsyncConnection, job_id: UUID, expected: int, new: int, complete: bool) -> int:
    """Move the offset of record from ``expected`` to ``new``, and mark the log complete.

    Returns the offset of record: another than ``new`` says that somebody else wrote, and nothing was changed.

    Raises:
        NotFound: no such job.
    """
    query = text("""
        UPDATE jobs SET log_bytes = :new, log_complete = log_complete OR :complete
        WHERE id = :id AND log_bytes = :expected RETURNING pg_notify(:channel, CAST(id AS text))
    """)
    values = {"id": job_id, "expected": expected, "new": new, "complete": complete, "channel": LOG_CHANNEL}
    if (await tx.execute(query, values)).one_or_none() is not None:
        return new
    query = text("SELECT log_bytes FROM jobs WHERE id = :id")
    offset = (await tx.execute(query, {"id": job_id})).scalar()
    if offset is None:
        raise NotFound(f"there is no job {job_id}")
    return offset


async def put_watch(tx: AsyncConnection, job_id: UUID, worker: str, incarnation: UUID, token: bytes) -> None:
    """This worker process watches the job now; the task token lets its successor fail the watch at once."""
    query = text("""
        INSERT INTO watches (job_id, worker, incarnation, token) VALUES (:id, :worker, :incarnation, :token)
        ON CONFLICT (job_id) DO UPDATE
        SET worker = EXCLUDED.worker, incarnation = EXCLUDED.incarnation, token = EXCLUDED.token
    """)
    values = {"id": job_id, "worker": worker, "incarnation": incarnation, "token": token}
    await tx.execute(query, values)


async def drop_watch(tx: AsyncConnection, job_id: UUID, incarnation: UUID) -> None:
    """The watch is over, unless another process has taken it."""
    query = text("DELETE FROM watches WHERE job_id = :id AND incarnation = :incarnation")
    await tx.execute(query, {"id": job_id, "incarnation": incarnation})


async def stale_watches(tx: AsyncConnection, worker: str, incarnation: UUID) -> list[bytes]:
    """Task tokens of the watches that an earlier process of this worker held; they are taken off the list."""
    query = text("DELETE FROM watches WHERE worker = :worker AND incarnation <> :incarnation RETURNING token")
    return [row.token for row in await tx.execute(query, {"worker": worker, "incarnation": incarnation})]
