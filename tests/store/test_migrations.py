from __future__ import annotations

import asyncio

from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection
from sqlmodel import SQLModel

import perdure.store.tables  # noqa: F401
from perdure.store import installation
from perdure.store.database import Database
from perdure.store.migrations import migrate


async def test_several_workers_starting_at_once_migrate_once(empty_database_url: str):
    await asyncio.gather(*(migrate(empty_database_url) for _ in range(5)))
    await migrate(empty_database_url)

    db = Database(empty_database_url)
    found = await asyncio.gather(*(installation.ensure(db) for _ in range(5)))
    await db.close()
    assert len({one.id for one in found}) == 1
    assert found[0].epoch == 1


async def test_migrations_make_exactly_the_declared_tables(database: Database):
    def differences(connection: Connection) -> list[object]:
        return list(compare_metadata(MigrationContext.configure(connection), SQLModel.metadata))

    async with database.transaction() as tx:
        assert await tx.run_sync(differences) == []
