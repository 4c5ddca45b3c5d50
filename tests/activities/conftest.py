"""A real Postgres, a real shim on this machine, and activities called as a worker calls them, without Temporal."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from perdure.backends.places import outside
from perdure.store.database import Database
from tests.activities.bench import Bench, opened
from tests.support.postgres import database, database_url, postgres_server
from tests.support.temporal import temporal, temporal_server

__all__ = ["database", "database_url", "postgres_server", "temporal", "temporal_server"]


@pytest_asyncio.fixture
async def bench(database: Database) -> AsyncIterator[Bench]:
    """A world with one project, one fleet, and no instance yet. Its home's path is short: sockets are in it."""
    home = Path(tempfile.mkdtemp(prefix="perdure-"))
    try:
        async with opened(database, home) as made:
            yield made
    finally:
        for folder in (home, *outside(home)):
            shutil.rmtree(folder, ignore_errors=True)
