"""Fixtures of the store's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from perdure.store.database import Database
from tests.support.inventory import Inventory
from tests.support.postgres import database, database_url, empty_database_url, postgres_server

__all__ = ["database", "database_url", "empty_database_url", "postgres_server"]


@pytest_asyncio.fixture
async def inventory(database: Database) -> AsyncIterator[Inventory]:
    yield Inventory(database)
