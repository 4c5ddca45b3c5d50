"""Bringing a database to the newest tables (Alembic), one transaction a step."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from perdure.store.database import driver_url

LOCK = 0x7065726475726500
"""Of Postgres' advisory locks: one migrator at a time, the others find nothing left to do."""


async def migrate(url: str) -> None:
    """Bring the database at ``url`` to the newest version. Safe at every start, from many processes at once."""
    engine = create_async_engine(driver_url(url), poolclass=NullPool)
    try:
        async with engine.connect() as connection:
            await connection.execute(text("SELECT pg_advisory_lock(:lock)"), {"lock": LOCK})
            await connection.commit()
            await connection.run_sync(_upgrade)
            await connection.execute(text("SELECT pg_advisory_unlock(:lock)"), {"lock": LOCK})
            await connection.commit()
    finally:
        await engine.dispose()


def configuration(connection: Connection) -> Config:
    """Alembic's configuration, on a connection that is open."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["connection"] = connection
    return config


def _upgrade(connection: Connection) -> None:
    command.upgrade(configuration(connection), "head")
