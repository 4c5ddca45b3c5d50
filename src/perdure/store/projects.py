"""Projects: a name in front of everything, and the lock of one queue."""

from __future__ import annotations

from uuid import UUID, uuid4

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection


async def ensure(tx: AsyncConnection, name: str) -> UUID:
    """The project's id; it is made if it is new."""
    found = (await tx.execute(text("SELECT id FROM projects WHERE name = :name"), {"name": name})).scalar()
    if found is None:
        await tx.execute(
            text("INSERT INTO projects (id, name) VALUES (:id, :name) ON CONFLICT DO NOTHING"),
            {"id": uuid4(), "name": name},
        )
        found = (await tx.execute(text("SELECT id FROM projects WHERE name = :name"), {"name": name})).scalar_one()
    return found


async def lock(tx: AsyncConnection, project_id: UUID) -> None:
    """Be the only one to claim or free capacity in this project until the transaction ends.

    One lock a project, because its queue is one: who is next depends on all that is free and all that wait.
    NO KEY UPDATE, so that rows which refer to the project can still be inserted meanwhile.
    """
    await tx.execute(text("SELECT 1 FROM projects WHERE id = :id FOR NO KEY UPDATE"), {"id": project_id})
