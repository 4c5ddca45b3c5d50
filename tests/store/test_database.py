"""A server that stops, starts or dies is the control plane's fault, said in a sentence, and may be asked again."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest
import pytest_asyncio
from sqlalchemy import text

from perdure.model.errors import ControlPlaneError
from perdure.store.database import Database
from tests.support.postgres import QUICK, Server, start


@pytest_asyncio.fixture
async def server() -> AsyncIterator[Server]:
    """One that a test may kill."""
    root = Path(tempfile.mkdtemp(prefix="perdure-pg-"))
    root.chmod(0o755)
    server = start(root / "server", *QUICK)
    yield server
    if server.process.poll() is None:
        os.kill(server.process.pid, signal.SIGQUIT)
        server.process.wait(60)
    shutil.rmtree(root)


async def ask(database: Database, question: str = "SELECT 1") -> None:
    async with database.transaction() as tx:
        await tx.execute(text(question))


async def test_a_server_that_is_shutting_down_cannot_be_reached(server: Server) -> None:
    database = Database(server.url("postgres"))
    client = await asyncpg.connect(server.url("postgres"))  # for whom a server that got a SIGTERM waits
    server.process.send_signal(signal.SIGTERM)
    with pytest.raises(ControlPlaneError, match="cannot be reached: the database system is shutting down"):
        while True:  # until the signal is heard
            await ask(database)
            await database.close()
    await client.close()
    await database.close()


async def test_a_server_that_dies_within_a_query_went_away_and_is_asked_again(server: Server) -> None:
    database = Database(server.url("postgres"))
    await ask(database)
    asking = [asyncio.create_task(ask(database, "SELECT pg_sleep(60)")) for _ in range(5)]
    while True:
        watcher = await asyncpg.connect(server.url("postgres"))
        sleeping = await watcher.fetchval("SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep%'")
        await watcher.close()
        if sleeping > len(asking):
            break
    server.process.kill()
    for answer in await asyncio.gather(*asking, return_exceptions=True):
        assert isinstance(answer, ControlPlaneError), repr(answer)
        assert answer.retryable
    with pytest.raises(ControlPlaneError):
        await ask(database)
    await database.close()
