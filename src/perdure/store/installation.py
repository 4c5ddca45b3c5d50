"""Who this installation is."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID, uuid4

from sqlalchemy import text

from perdure.store.database import Database


@dataclass(frozen=True)
class Installation:
    """Its id and epoch are on everything we buy; what carries others is left alone."""

    id: UUID
    epoch: int


async def ensure(db: Database) -> Installation:
    """The installation of this database, made if it is new. The same for all who ask at once."""
    async with db.transaction() as tx:
        await tx.execute(
            text("INSERT INTO installation (singleton, id, epoch) VALUES (true, :id, 1) ON CONFLICT DO NOTHING"),
            {"id": uuid4()},
        )
        row = (await tx.execute(text("SELECT id, epoch FROM installation"))).one()
    return Installation(row.id, row.epoch)
