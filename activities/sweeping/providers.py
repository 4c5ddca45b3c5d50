"""What providers have of ours that no living row knows. It bills for ever if nobody ends it."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from activities.sweeping.suspicion import Suspicion
from activities.sweeping.together import together
from activities.world import World
from perdure.backends import Backend, ProviderInstance
from perdure.model.messages import Finding
from perdure.store import sweeping

FEW = 5
"""Orphans ended in one pass. More at once look like a restored backup: nothing is ended, and people are told."""


class ProvidersLook:
    def __init__(self, world: World, suspicion: Suspicion):
        self.world = world
        self.suspicion = suspicion

    async def orphans(self) -> list[Finding]:
        """Instances with our tag and epoch and no living row, seen twice and past the grace time."""
        async with self.world.database.transaction() as tx:
            living = {row.instance_id for row in await sweeping.instances(tx)}
        return await together(self._of(backend, living) for backend in self.world.backends.values())

    async def _of(self, backend: Backend, living: set[UUID]) -> list[Finding]:
        grace = self.world.timing.sweep_grace
        orphans = [
            there
            for there in await backend.list()
            if (there.installation, there.epoch) == (self.world.installation, self.world.epoch)
            and there.instance_id not in living
            and there.age >= grace
            and self.suspicion.confirmed(f"{backend.name} {there.instance_id}", grace)
        ]
        orphans = await self._still_unknown(orphans)
        if len(orphans) > FEW:
            words = f"{backend.name} has {len(orphans)} instances of ours that no row knows: none was terminated"
            return [_finding(there, f"{words}; `perdure doctor` says more", settled=False) for there in orphans]
        return await together(self._end(backend, there) for there in orphans)

    async def _still_unknown(self, orphans: Iterable[ProviderInstance]) -> list[ProviderInstance]:
        """Rows are written before a provider is asked, so that one read after the list settles it."""
        async with self.world.database.transaction() as tx:
            living = {row.instance_id for row in await sweeping.instances(tx)}
        return [there for there in orphans if there.instance_id not in living]

    async def _end(self, backend: Backend, there: ProviderInstance) -> list[Finding]:
        answer = await backend.terminate(there.instance_id)
        how = "terminated" if answer.gone else f"terminating: {answer.message}"
        return [_finding(there, f"{backend.name} had an instance that no row knows: {how}", settled=answer.gone)]


def _finding(there: ProviderInstance, message: str, *, settled: bool) -> Finding:
    return Finding(kind="orphan-instance", subject=str(there.instance_id), message=message, settled=settled)
