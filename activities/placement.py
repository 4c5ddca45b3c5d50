"""Claims and ends: who holds what changes here, each step in one transaction."""

from __future__ import annotations

from collections.abc import Iterable

from temporalio import activity

from activities.errors import translated
from activities.world import World
from perdure.model import activities as do
from perdure.model.messages import ClaimAnswer, ClaimRef, ClaimRequest, JobEnd, JobRecord, Nothing, Nudges
from perdure.model.resources import Offer, Requirements
from perdure.store import claims, ends, jobs


def offered(world: World, requirements: Requirements) -> Iterable[Offer]:
    """What the backends could make for this, as they know it now; nobody is asked over the network."""
    return [offer for backend in world.backends.values() for offer in backend.offers(requirements)]


class Placement:
    def __init__(self, world: World):
        self._world = world

    @activity.defn(name=do.CLAIM.name)
    @translated
    async def claim(self, request: ClaimRequest) -> ClaimAnswer:
        """All nodes of one replica, or none."""
        async with self._world.database.transaction() as tx:
            return await claims.claim(tx, request, self._offers)

    @activity.defn(name=do.WITHDRAW_CLAIM.name)
    @translated
    async def withdraw_claim(self, ref: ClaimRef) -> Nudges:
        """Leave the queue, or give everything back."""
        async with self._world.database.transaction() as tx:
            return Nudges(nudges=await claims.withdraw(tx, ref.claim_id, self._offers))

    @activity.defn(name=do.RECORD_JOB.name)
    @translated
    async def record_job(self, record: JobRecord) -> Nothing:
        """A job's line in the projection."""
        async with self._world.database.transaction() as tx:
            await jobs.record(tx, record)
        return Nothing()

    @activity.defn(name=do.END_JOB.name)
    @translated
    async def end_job(self, end: JobEnd) -> Nudges:
        """The end, the release and the next grant."""
        async with self._world.database.transaction() as tx:
            return Nudges(nudges=await ends.end_job(tx, end, self._offers))

    def _offers(self, requirements: Requirements) -> Iterable[Offer]:
        return offered(self._world, requirements)
