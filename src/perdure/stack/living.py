"""What still lives when the stack goes down, and how to end it: runs, then the agents of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import asyncpg

from perdure.agents.client import Agents
from perdure.backends.local import LocalBackend
from perdure.backends.local_shims import folders
from perdure.backends.places import outside
from perdure.client import PerdureClient
from perdure.model.errors import PerdureError
from perdure.stack.home import Home, StackError

ABORT_AFTER = 30.0
"""Seconds that runs get to stop gracefully before they are aborted."""

ABORT_WITHIN = 60.0

OURS = (
    "blobs",
    "instances",
    "jobs",
    "logs",
    "postgres",
    "run",
    "temporal",
    "key",
    "lock",
    "stack.json",
    "state.json",
)
"""What is made in PERDURE_HOME, and is thus ours to delete."""


class Living(NamedTuple):
    """A run that has not ended."""

    project: str
    name: str
    status: str
    jobs: int
    """That are at work on a machine."""

    def __str__(self) -> str:
        where = self.name if self.project == "main" else f"{self.project}/{self.name}"
        return f"{where} ({self.status}, {self.jobs} job{'' if self.jobs == 1 else 's'})"


async def runs(home: Home) -> list[Living]:
    """The runs that have not ended, of all projects; straight from Postgres, which needs no worker.

    Raises:
        StackError: Postgres cannot be asked.
    """
    found = home.running()
    if found is None:
        return []
    try:
        connection = await asyncpg.connect(found["database_url"], timeout=5)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError) as error:
        raise StackError(f"the database cannot be asked what runs: {error}") from None
    try:
        rows = await connection.fetch(
            "SELECT p.name AS project, r.name, r.status,"
            " (SELECT count(*) FROM jobs j WHERE j.run_id = r.id AND j.ended_at IS NULL) AS jobs"
            " FROM runs r JOIN projects p ON p.id = r.project_id"
            " WHERE r.ended_at IS NULL AND r.superseded_by IS NULL ORDER BY r.submitted_at"
        )
    except asyncpg.UndefinedTableError:
        return []
    finally:
        await connection.close()
    return [Living(row["project"], row["name"], row["status"], row["jobs"]) for row in rows]


async def stop_runs(home: Home, say: Callable[[str], None]) -> None:
    """Stop every run, gracefully first, and wait until none is left.

    Raises:
        StackError: some do not end.
    """
    living = await runs(home)
    if not living:
        return
    say(f"stopping {len(living)} run{'' if len(living) == 1 else 's'}: {', '.join(map(str, living))}")
    client = await PerdureClient.connect(environ={"PERDURE_HOME": str(home.path)})
    for abort, patience in ((False, ABORT_AFTER), (True, ABORT_WITHIN)):
        for run in living:
            with contextlib.suppress(PerdureError):  # it has ended meanwhile; else the count below tells
                await client.stop(run.project, run.name, abort=abort)
        deadline = time.monotonic() + patience
        while living and time.monotonic() < deadline:
            await asyncio.sleep(0.1)
            living = await runs(home)
        if not living:
            return
        if not abort:
            say(f"aborting what has not stopped: {', '.join(map(str, living))}")
    raise StackError(f"these runs do not stop: {', '.join(map(str, living))}", hint="see `perdure ps`")


def agents(home: Home) -> list[str]:
    """The names of this machine's instances whose agent lives, whether or not the stack is up."""
    return [
        described["name"]
        for folder in folders(home.path)
        if (described := folder.read()) is not None and folder.shim() is not None
    ]


def rest_agents(home: Home) -> None:
    """Stop the agents of this machine, whose tasks must have ended. The next ``up`` starts them again."""
    for folder in folders(home.path):
        folder.stop()


async def delete(home: Home) -> None:
    """End the agents of this machine with all their tasks, and remove everything that is kept. The stack is down.

    Raises:
        StackError: something of it is left.
    """
    if not home.state_file.exists():
        raise StackError(f"{home.path} is not a folder that Perdure keeps state in")
    pool = Agents()
    local = LocalBackend(home.path, pool)
    for instance in await local.list():
        ended = await local.terminate(instance.instance_id)
        if not ended.gone:
            raise StackError(f"instance {_short(instance.instance_id)} cannot be ended: {ended.message}")
    await pool.close()
    try:
        await asyncio.to_thread(local.end_remains)
    except OSError as error:
        raise StackError(f"jobs of deleted instances cannot be ended: {error}") from None
    await asyncio.to_thread(_remove, home)


def _remove(home: Home) -> None:
    for path in [*outside(home.path), *(home.path / name for name in OURS)]:
        try:
            _remove_one(path)
        except OSError as error:
            raise StackError(f"{error.filename or path} cannot be removed: {error.strerror}") from None
    with contextlib.suppress(OSError):  # something that is not ours is in it
        home.path.rmdir()


def _remove_one(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _short(instance_id: UUID) -> str:
    return instance_id.hex[:12]
