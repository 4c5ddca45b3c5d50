"""Lists: what people look at, read from Postgres alone."""

from __future__ import annotations

from temporalio import activity

from activities.errors import translated
from activities.world import World
from perdure.model.api import (
    LIST_EVENTS,
    LIST_FLEETS,
    LIST_RUNS,
    EventQuery,
    EventRows,
    FleetQuery,
    FleetRows,
    RunQuery,
    RunRows,
)
from perdure.store import events, reads


class Reads:
    def __init__(self, world: World):
        self._world = world

    @activity.defn(name=LIST_RUNS.name)
    @translated
    async def list_runs(self, query: RunQuery) -> RunRows:
        """Runs with their jobs: those that live, all, or one."""
        async with self._world.database.transaction() as tx:
            return RunRows(runs=tuple(await reads.list_runs(tx, query)))

    @activity.defn(name=LIST_FLEETS.name)
    @translated
    async def list_fleets(self, query: FleetQuery) -> FleetRows:
        """Fleets with their instances."""
        async with self._world.database.transaction() as tx:
            return FleetRows(fleets=tuple(await reads.list_fleets(tx, query.project)))

    @activity.defn(name=LIST_EVENTS.name)
    @translated
    async def list_events(self, query: EventQuery) -> EventRows:
        """What changed of late, oldest first."""
        async with self._world.database.transaction() as tx:
            return EventRows(events=tuple(await events.listed(tx, query)))
