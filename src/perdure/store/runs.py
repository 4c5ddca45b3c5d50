"""Runs: the effective specification of each, and its line in the projection."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import bindparam, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from perdure.model.messages import CodeRef, RunRecord
from perdure.spec.effective import EffectiveRun
from perdure.store import events, projects

_SUPERSEDE = text("""
    UPDATE runs SET superseded_by = :id
    WHERE project_id = :project AND name = :name AND id <> :id AND ended_at IS NULL AND superseded_by IS NULL
""")

_INSERT = text("""
    INSERT INTO runs (id, project_id, name, user_name, kind, status, message, spec, submitted_at, recorded_at)
    VALUES (:id, :project, :name, :user, :kind, 'submitted', '', :spec, :submitted_at, now())
    ON CONFLICT (id) DO NOTHING
""").bindparams(bindparam("spec", type_=JSONB))

_RECORD = text("""
    UPDATE runs SET status = :status, reason = :reason, message = :message, recorded_at = now(),
           ended_at = CASE WHEN :final THEN CAST(:at AS timestamptz) END
    WHERE id = :id AND ended_at IS NULL
""")


async def insert(tx: AsyncConnection, run: EffectiveRun) -> None:
    """Write a run and what it will use. Doing it again changes nothing.

    The workflow id is the lock of a name: a row of the same name that has not ended belongs to a workflow that is
    gone, and is marked superseded, for the sweep.
    """
    policy = run.policy
    project_id = await projects.ensure(tx, policy.project)
    key = {"id": policy.run_id, "project": project_id, "name": policy.name}
    known = text("SELECT 1 FROM runs WHERE id = :id")
    if (await tx.execute(known, {"id": policy.run_id})).one_or_none() is None:
        await tx.execute(_SUPERSEDE, key)
        values = {
            **key,
            "user": policy.user,
            "kind": policy.kind,
            "spec": run.model_dump(mode="json"),
            "submitted_at": policy.submitted_at,
        }
        await tx.execute(_INSERT, values)
    await use_archives(tx, run.code)


async def use_archives(tx: AsyncConnection, code: tuple[CodeRef, ...]) -> None:
    """Note when code was last used: what nobody uses is deleted after a while."""
    query = text("""
        INSERT INTO archives (sha256, size, used_at) VALUES (:sha256, :size, now())
        ON CONFLICT (sha256) DO UPDATE SET used_at = now()
    """)
    for sha256, size in sorted({(ref.sha256, ref.size) for ref in code}):
        await tx.execute(query, {"sha256": sha256, "size": size})


async def record(tx: AsyncConnection, run: RunRecord) -> None:
    """Move a run's line on; an ended run stays as it is."""
    values = {
        "id": run.run_id,
        "status": run.status.value,
        "reason": run.reason.value if run.reason else None,
        "message": run.status_message,
        "final": run.final,
        "at": run.at,
    }
    await tx.execute(_RECORD, values)
    for note in run.notes:
        await events.noted(tx, run.run_id, note)
    if run.heard:
        query = text("UPDATE jobs SET heard = true WHERE id = ANY(:ids) AND run_id = :run AND NOT heard")
        await tx.execute(query, {"ids": list(run.heard), "run": run.run_id})


async def effective(tx: AsyncConnection, run_id: UUID) -> EffectiveRun | None:
    """What a run was resolved to; None: there is no such run."""
    spec = (await tx.execute(text("SELECT spec FROM runs WHERE id = :id"), {"id": run_id})).scalar()
    return None if spec is None else EffectiveRun.model_validate(spec)
