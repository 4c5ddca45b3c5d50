"""One pass of the sweep: find what nobody owns, end it or give it an owner, and tell again what nobody heard.

Rows are read, their workflows are asked for by id, and what looks abandoned is read again before anything is done:
a job that ended in between is no finding. One bad object never stops the others.
"""

from __future__ import annotations

from collections.abc import Iterable

from temporalio import activity

from activities.contact import heartbeats
from activities.errors import translated
from activities.sweeping.agents import AgentsLook
from activities.sweeping.owners import Owners
from activities.sweeping.providers import ProvidersLook
from activities.sweeping.rounds import Rounds
from activities.sweeping.rows import RowsLook
from activities.sweeping.suspicion import Suspicion
from activities.sweeping.together import together
from activities.sweeping.untold import UntoldLook
from activities.sweeping.waiting import WaitingLook
from activities.world import World
from perdure.model.activities import SWEEP
from perdure.model.messages import Finding, Findings, Nothing
from perdure.store import events, retention
from perdure.store.database import acting

MOST = 100
"""Findings that one pass hands on; the next pass finds the rest again."""


class Sweeping:
    def __init__(self, world: World):
        self.world = world
        self.suspicion = Suspicion()
        self.rounds = Rounds()

    @activity.defn(name=SWEEP.name)
    @translated
    async def sweep(self, _: Nothing) -> Findings:
        """Look at everything once. Safe to repeat; what a pass could not look at, the next one does."""
        with acting("sweep"):
            return await self._pass()

    async def _pass(self) -> Findings:
        async with heartbeats(self.world.timing.heartbeat / 3):
            self.suspicion.next_pass()
            owners = Owners(self.world.temporal)
            rows = RowsLook(self.world, owners, self.rounds)
            looks = (
                rows.jobs,
                rows.runs,
                rows.instances,
                UntoldLook(self.world, owners).look,
                ProvidersLook(self.world, self.suspicion).orphans,
                AgentsLook(self.world, self.suspicion).look,
                WaitingLook(self.world).look,
            )
            found: list[Finding] = []
            for look in looks:
                found += await together([look()])
            await together([self._let_go()])
            await self._record(found)
            return Findings(findings=tuple(found[:MOST]))

    async def _let_go(self) -> list[Finding]:
        """What is older than the retention: rows first, then the blobs that nothing refers to any more."""
        async with self.world.database.transaction() as tx:
            keys = await retention.forget(tx, self.world.retention_days)
        await self.world.blobs.delete(keys)
        return []

    async def _record(self, findings: Iterable[Finding]) -> None:
        async with self.world.database.transaction() as tx:
            for finding in findings:
                await events.found(tx, finding)
