"""What a run's workflow asks when it may have missed something: after continue-as-new, or a Temporal reset."""

from __future__ import annotations

from temporalio import activity

from activities.world import World
from perdure.model import activities as do
from perdure.model.messages import CatchUp, Caught
from perdure.store import recall


class Recall:
    def __init__(self, world: World):
        self._world = world

    @activity.defn(name=do.CATCH_UP.name)
    async def catch_up(self, wanted: CatchUp) -> Caught:
        """How the run's jobs stand, as Postgres knows it."""
        async with self._world.database.transaction() as tx:
            return Caught(news=await recall.news(tx, wanted))
