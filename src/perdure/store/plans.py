"""What a plan is made from: the project's pool, and the run that has the name now. Reads only."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from perdure.core.allocation import Offers, Pool
from perdure.model.api import ActiveRun
from perdure.store import pool


async def project_pool(tx: AsyncConnection, project: str, offers: Offers) -> Pool:
    """All of the project, busy instances too; empty for a project that does not exist yet."""
    found = (await tx.execute(text("SELECT id FROM projects WHERE name = :name"), {"name": project})).scalar()
    return Pool([], [], offers) if found is None else await pool.load(tx, found, offers, busy=True)


async def fleet_configuration(tx: AsyncConnection, fleet_id: UUID) -> dict[str, Any] | None:
    """As it was applied."""
    query = text("SELECT configuration FROM fleets WHERE id = :id")
    return (await tx.execute(query, {"id": fleet_id})).scalar()


async def active_run(tx: AsyncConnection, project: str, name: str) -> ActiveRun | None:
    """The run of that name that has not ended."""
    query = text("""
        SELECT r.id, r.status, r.submitted_at, r.user_name FROM runs r JOIN projects p ON p.id = r.project_id
        WHERE p.name = :project AND r.name = :name AND r.ended_at IS NULL AND r.superseded_by IS NULL
    """)
    row = (await tx.execute(query, {"project": project, "name": name})).one_or_none()
    if row is None:
        return None
    return ActiveRun(run_id=row.id, status=row.status, submitted_at=row.submitted_at, user=row.user_name)
