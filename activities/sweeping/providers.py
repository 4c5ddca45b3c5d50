"""What providers have of ours that no living row has bought. It bills for ever if nobody ends it."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from activities.sweeping.suspicion import Suspicion
from activities.sweeping.together import together
from activities.world import World
from perdure.backends import Backend, ProviderInstance
from perdure.model.errors import ProviderError
from perdure.model.messages import Finding, Termination
from perdure.model.statuses import InstanceStatus
from perdure.store import instances

FEW = 5
"""Orphans ended in one pass. More at once look like a restored backup: nothing is ended, and people are told."""


@dataclass(frozen=True)
class Orphan:
    backend: Backend
    there: ProviderInstance


class ProvidersLook:
    def __init__(self, world: World, suspicion: Suspicion):
        self.world = world
        self.suspicion = suspicion

    async def orphans(self) -> list[Finding]:
        """Instances with our tag and epoch that no living row has bought: seen twice and past the grace time, they
        are ended. Those that are not old enough yet count, too, when it comes to how many there are at once."""
        found = await together(self._of(backend) for backend in self.world.backends.values())
        grace = self.world.timing.sweep_grace
        confirmed = [it for it in found if self.suspicion.confirmed(_subject(it), grace)]
        if len(found) > FEW:
            words = f"providers have {len(found)} instances of ours that no row knows: none was terminated"
            return [_finding(it, f"{words}; `perdure doctor` says more", settled=False) for it in confirmed]
        return await together(self._end(it) for it in confirmed)

    async def _of(self, backend: Backend) -> list[Orphan]:
        """Rows are written before a provider is asked, so that what is read after the list settles it."""
        ours = (self.world.installation, self.world.epoch)
        listed = [it for it in await backend.list() if (it.installation, it.epoch) == ours]
        bought = await self._bought()
        old = self.world.timing.sweep_grace
        return [Orphan(backend, it) for it in listed if it.instance_id not in bought and it.age >= old]

    async def _bought(self) -> set[UUID]:
        """What living rows have bought, not what an offer left that failed. (Of an instance that is being ended,
        that too: its workflow sees to it.)"""
        async with self.world.database.transaction() as tx:
            living = await instances.living(tx)
        bought = {one.purchase for one in living}
        leaving = (one for one in living if one.status is InstanceStatus.TERMINATING)
        return bought | {purchase for one in leaving for purchase, _ in one.purchases}

    async def _end(self, orphan: Orphan) -> list[Finding]:
        try:
            answer = await orphan.backend.terminate(orphan.there.instance_id)
        except ProviderError as error:
            answer = Termination(gone=False, message=error.message)
        how = "terminated" if answer.gone else f"terminating: {answer.message}"
        message = f"{orphan.backend.name} had an instance that no row knows: {how}"
        return [_finding(orphan, message, settled=answer.gone)]


def _subject(orphan: Orphan) -> str:
    return f"{orphan.backend.name} {orphan.there.instance_id}"


def _finding(orphan: Orphan, message: str, *, settled: bool) -> Finding:
    subject = str(orphan.there.instance_id)
    return Finding(kind="orphan-instance", subject=subject, message=message, settled=settled)
