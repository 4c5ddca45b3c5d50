"""The runs of an embedded stack, through the public client: submitted, waited for, and checked at rest."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import UUID

from perdure.client import PerdureClient
from perdure.model.api import Check, RunRow
from perdure.model.errors import ControlPlaneError, NotFound
from perdure.model.messages import RunRequest
from perdure.model.statuses import RunStatus
from tests.support.stack import Stack
from tests.support.waiting import WITHIN, eventually


@dataclass
class Runs:
    """Those of one stack. Waits outlast a part of it that was just killed."""

    stack: Stack
    names: dict[UUID, str] = field(default_factory=dict)
    _client: PerdureClient | None = None

    async def client(self) -> PerdureClient:
        if self._client is None:
            self._client = await PerdureClient.connect(environ=self.stack.environ)
        return self._client

    def reconnect(self) -> None:
        """The stack is another one now, perhaps at other ports."""
        self._client = None

    async def submit(self, name: str, *commands: str, **fields: object) -> UUID:
        configuration = {"type": "task", "commands": list(commands), **fields}
        request = RunRequest(configuration=configuration, user="test")
        run_id = await (await self.client()).apply("main", name, request)
        self.names[run_id] = name
        return run_id

    async def row(self, run_id: UUID) -> RunRow | None:
        """None: it is not there yet, or cannot be asked for now."""
        with suppress(NotFound, ControlPlaneError):
            return await (await self.client()).get_run("main", run_id=run_id)
        return None

    async def until(self, run_id: UUID, *wanted: str) -> RunRow:
        """Wait for one of these statuses; without any, for a final one."""
        finals = [status.value for status in RunStatus if status.final]
        deadline = time.monotonic() + WITHIN
        while True:
            row = await self.row(run_id)
            if row is not None and row.status in (wanted or finals):
                return row
            assert time.monotonic() < deadline, f"after {WITHIN:.0f} s still {row}"
            await asyncio.sleep(0.1)

    async def end(self, run_id: UUID) -> RunRow:
        """The run as it ended. Waits on its workflow, so that many may wait at once."""
        client = await self.client()
        deadline = time.monotonic() + 2 * WITHIN
        while True:
            left = deadline - time.monotonic()
            assert left > 0, f"it does not end: {await self.row(run_id)}"
            try:
                await asyncio.wait_for(client.closed("main", self.names[run_id], run_id), left)
                return await self.until(run_id)
            except (ControlPlaneError, TimeoutError):
                await asyncio.sleep(0.2)

    async def log(self, row: RunRow, node: int = 0, attempt: int = 0) -> bytes:
        client = await self.client()
        pieces = client.follow_logs("main", row.name, run_id=row.run_id, node=node, attempt=attempt, wait=False)
        return b"".join([piece.data async for piece in pieces])

    async def no_instances(self) -> None:
        """Wait until every instance has idled out, and is gone."""

        async def none() -> bool:
            with suppress(ControlPlaneError):
                return not [one for fleet in await (await self.client()).fleets("main") for one in fleet.instances]
            return False

        await eventually(none, "every instance to be gone")

    async def at_rest(self) -> None:
        """Every invariant holds, and nothing of any job is left, once nothing moves any more."""
        deadline = time.monotonic() + WITHIN
        while broken := [*await self._broken(), *self.stack.agents("agents.runner"), *self.stack.agents("keeper")]:
            assert time.monotonic() < deadline, f"not at rest: {broken}"
            await asyncio.sleep(0.2)

    async def _broken(self) -> list[Check]:
        return [check for check in await (await self.client()).doctor() if not check.ok]
