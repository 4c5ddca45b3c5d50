"""The rows of an instance's life."""

from __future__ import annotations

from collections.abc import Iterable

from temporalio import activity

from activities.errors import translated
from activities.placement import offered
from activities.world import World
from perdure.model import activities as do
from perdure.model.messages import InstanceLost, InstanceReady, InstanceRef, InstanceView
from perdure.model.resources import Offer, Requirements
from perdure.store import lives


class InstanceRows:
    def __init__(self, world: World):
        self._world = world

    @activity.defn(name=do.VIEW_INSTANCE.name)
    @translated
    async def view_instance(self, ref: InstanceRef) -> InstanceView:
        async with self._world.database.transaction() as tx:
            return await lives.view(tx, ref.instance_id)

    @activity.defn(name=do.INSTANCE_READY.name)
    @translated
    async def instance_ready(self, news: InstanceReady) -> InstanceView:
        """It takes work from now on; claims that have all their instances are told."""
        async with self._world.database.transaction() as tx:
            return await lives.ready(tx, news, self._offers)

    @activity.defn(name=do.INSTANCE_LOST.name)
    @translated
    async def instance_lost(self, news: InstanceLost) -> InstanceView:
        """It could not be had: its claims fail, and it is to be terminated."""
        async with self._world.database.transaction() as tx:
            return await lives.lost(tx, news, self._offers)

    @activity.defn(name=do.RETIRE_INSTANCE.name)
    @translated
    async def retire_instance(self, ref: InstanceRef) -> InstanceView:
        """Terminate it, if it is still idle and no longer needed."""
        async with self._world.database.transaction() as tx:
            return await lives.retire(tx, ref.instance_id)

    @activity.defn(name=do.INSTANCE_GONE.name)
    @translated
    async def instance_gone(self, ref: InstanceRef) -> InstanceView:
        """The provider says that it is gone."""
        async with self._world.database.transaction() as tx:
            return await lives.gone(tx, ref.instance_id, self._offers)

    def _offers(self, requirements: Requirements) -> Iterable[Offer]:
        return offered(self._world, requirements)
