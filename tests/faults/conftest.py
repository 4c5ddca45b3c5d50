"""A fresh embedded stack a test, with the numbers of its lifecycle shrunk, and everything checked at rest."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from uuid import UUID

import psutil
import pytest_asyncio

from perdure.client import PerdureClient
from perdure.model.api import RunRow
from perdure.model.errors import ControlPlaneError, NotFound
from perdure.model.messages import RunRequest
from perdure.model.statuses import RunStatus

PERDURE = str(Path(sys.executable).parent / "perdure")
DEADLY = str(Path(__file__).parent.parent / "support" / "deadly")

QUICK = {
    "heartbeat": 2.0,
    "watch_heartbeat": 3.0,
    "activity_retry": 0.1,
    "retry_backoff": [0.5],
    "stop_grace": 2.0,
    "abort_bound": 5.0,
    "sweep_grace": 3.0,
}


@dataclass
class Installation:
    """An embedded stack under its own ``PERDURE_HOME``."""

    home: Path
    extra: dict[str, str] = field(default_factory=dict)
    client: PerdureClient | None = None
    names: dict[UUID, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        clean = {
            name: value for name, value in os.environ.items() if not name.startswith(("PERDURE_", "TEMPORAL_"))
        }
        return clean | {"PERDURE_HOME": str(self.home), "PERDURE_TIMING": json.dumps(QUICK)} | self.extra

    def perdure(self, *words: str, check: bool = True, seconds: float = 90) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [PERDURE, *words], env=self.environment, capture_output=True, text=True, timeout=seconds, cwd=self.home
        )
        if check and done.returncode != 0:
            raise AssertionError(f"perdure {' '.join(words)}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done

    def pids(self) -> dict[str, int]:
        return json.loads((self.home / "stack.json").read_text())["pids"]

    def agents(self, word: str) -> list[psutil.Process]:
        """This installation's shims, runners or keepers."""
        found = []
        for process in psutil.process_iter(["pid", "cmdline"]):
            line = " ".join(process.info["cmdline"] or ())
            if str(self.home) in line and word in line:
                found.append(process)
        return found

    def kill(self, part: str, number: int = signal.SIGKILL) -> None:
        os.kill(self.pids()[part], number)

    @property
    def die_file(self) -> Path:
        return Path(self.extra["PERDURE_DIE_FILE"])

    def die_at(self, point: str) -> None:
        """Let the worker die at ``ACTIVITY:before`` or ``:after``, the next time only."""
        beside = self.die_file.with_name("next")
        beside.write_text(point)
        beside.rename(self.die_file)

    def died(self) -> bool:
        """Whether it did; the point is taken back if not."""
        self.die_file.unlink(missing_ok=True)
        dead = Path(f"{self.die_file}.died")
        happened = dead.exists()
        dead.unlink(missing_ok=True)
        return happened

    async def connected(self) -> PerdureClient:
        if self.client is None:
            self.client = await PerdureClient.connect(environ=self.environment)
        return self.client

    async def submit(self, name: str, *commands: str, **fields: object) -> UUID:
        client = await self.connected()
        configuration = {"type": "task", "commands": list(commands), **fields}
        run_id = await client.apply("main", name, RunRequest(configuration=configuration, user="test"))
        self.names[run_id] = name
        return run_id

    async def run(self, run_id: UUID) -> RunRow | None:
        client = await self.connected()
        with suppress(NotFound, ControlPlaneError):
            return await client.get_run("main", run_id=run_id)
        return None

    async def until(self, run_id: UUID, *wanted: str, seconds: float = 60) -> RunRow:
        """Wait for a status. Never through an API that needs what was just killed to be there."""
        deadline = time.monotonic() + seconds
        row = None
        while time.monotonic() < deadline:
            row = await self.run(run_id)
            if row is not None and (row.status in wanted or (not wanted and RunStatus(row.status).final)):
                return row
            await asyncio.sleep(0.1)
        raise AssertionError(f"after {seconds} s still {row.status if row else 'nowhere'}: {row}")

    async def end(self, run_id: UUID, seconds: float = 90) -> RunRow:
        """The run as it ended. Waits on its workflow, so that many may wait at once; a server that was just killed
        is waited for, too."""
        client = await self.connected()
        deadline = time.monotonic() + seconds
        while True:
            left = deadline - time.monotonic()
            assert left > 0, f"after {seconds} s still {await self.run(run_id)}"
            try:
                await asyncio.wait_for(client.closed("main", self.names[run_id], run_id), left)
                break
            except (ControlPlaneError, TimeoutError):
                await asyncio.sleep(0.2)
        return await self.until(run_id, seconds=30)

    async def log(self, row: RunRow, node: int = 0, attempt: int = 0) -> bytes:
        client = await self.connected()
        pieces = client.follow_logs("main", row.name, run_id=row.run_id, node=node, attempt=attempt, wait=False)
        return b"".join([piece.data async for piece in pieces])

    async def no_instances(self, seconds: float = 60) -> None:
        """Wait until every instance has idled out, and is gone."""
        client = await self.connected()
        deadline = time.monotonic() + seconds
        while True:
            with suppress(ControlPlaneError):
                living = [one for fleet in await client.fleets("main") for one in fleet.instances]
                if not living:
                    return
            assert time.monotonic() < deadline, f"still there: {living}"
            await asyncio.sleep(0.2)

    async def at_rest(self, seconds: float = 30) -> None:
        """Every invariant holds, and nothing of any job is left, once nothing moves any more."""
        client = await self.connected()
        deadline = time.monotonic() + seconds
        while True:
            broken = [check for check in await client.doctor() if not check.ok]
            left = [*self.agents("perdure.agents.runner"), *self.agents("keeper")]
            if not broken and not left:
                return
            if time.monotonic() > deadline:
                raise AssertionError(f"not at rest: {broken} {left}")
            await asyncio.sleep(0.5)


@contextlib.asynccontextmanager
async def installed(**extra: str) -> AsyncIterator[Installation]:
    """Up, in a folder of its own, and taken down wholly at the end."""
    home = Path(tempfile.mkdtemp(prefix="pf-"))
    stack = Installation(home, extra)
    try:
        stack.perdure("up", "--detach")
        yield stack
    finally:
        stack.perdure("down", "--all", "--delete-state", check=False)
        left = stack.agents("perdure.agents")
        shutil.rmtree(home, ignore_errors=True)
        assert not left, f"agents were left behind: {left}"


@pytest_asyncio.fixture
async def installation() -> AsyncIterator[Installation]:
    """One of the test's own."""
    async with installed() as stack:
        yield stack


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def deadly() -> AsyncIterator[Installation]:
    """One for all tests of a module, whose worker dies where ``Installation.die_at`` says."""
    folder = Path(tempfile.mkdtemp(prefix="pd-"))
    folder.chmod(0o777)
    async with installed(PERDURE_DIE_FILE=str(folder / "die"), PYTHONPATH=DEADLY) as stack:
        yield stack
    shutil.rmtree(folder)
