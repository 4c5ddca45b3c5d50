from __future__ import annotations

import asyncio

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection
from sqlmodel import SQLModel

import perdure.store.tables  # noqa: F401
from perdure.store import installation, projects, secrets
from perdure.store.database import Database
from perdure.store.migrations import configuration, migrate


async def test_several_workers_starting_at_once_migrate_once(empty_database_url: str):
    await asyncio.gather(*(migrate(empty_database_url) for _ in range(5)))
    await migrate(empty_database_url)

    db = Database(empty_database_url)
    found = await asyncio.gather(*(installation.ensure(db) for _ in range(5)))
    await db.close()
    assert len({one.id for one in found}) == 1
    assert found[0].epoch == 1


async def test_an_earlier_versions_database_is_brought_up_with_what_is_in_it(empty_database_url: str):
    def first_version(connection: Connection) -> None:
        command.upgrade(configuration(connection), "0001")

    db = Database(empty_database_url)
    async with db.transaction() as tx:
        await tx.run_sync(first_version)
    before = await installation.ensure(db)
    async with db.transaction() as tx:
        project = await projects.ensure(tx, "main")

    await migrate(empty_database_url)

    async with db.transaction() as tx:
        await secrets.put(tx, "main", "key", secrets.Box(b"box", "key"), "ann")
        assert await secrets.names(tx, "main") == {"key"}
        assert await projects.ensure(tx, "main") == project
    assert await installation.ensure(db) == before
    await db.close()


async def test_migrations_make_exactly_the_declared_tables(database: Database):
    def differences(connection: Connection) -> list[object]:
        return list(compare_metadata(MigrationContext.configure(connection), SQLModel.metadata))

    async with database.transaction() as tx:
        assert await tx.run_sync(differences) == []
