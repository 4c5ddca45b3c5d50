"""A fleet's row, from its configuration."""

from __future__ import annotations

from temporalio import activity

from activities.errors import translated
from activities.placement import offered
from activities.world import World
from perdure.model import activities as do
from perdure.model.errors import FieldError, InvalidConfiguration
from perdure.model.messages import FleetRecord, FleetView
from perdure.spec import fleet_requirements, parse_fleet
from perdure.store import fleets
from perdure.store.database import acting
from perdure.store.fleets import FleetTerms

IDLE = 3 * 86400.0
"""Seconds an instance of a fleet stays idle if neither the fleet nor the run says anything."""


class Fleets:
    def __init__(self, world: World):
        self._world = world

    @activity.defn(name=do.RECORD_FLEET.name)
    @translated
    async def record_fleet(self, record: FleetRecord) -> FleetView:
        """Write the fleet, and the rows of the instances that it must have."""
        if record.deleting:
            async with self._world.database.transaction() as tx:
                return await fleets.delete(tx, record.project, record.name)
        try:
            terms = _terms(record)
        except InvalidConfiguration as error:
            return FleetView(errors=tuple(error.errors))
        with acting(f"user {record.user}" if record.user else ""):
            async with self._world.database.transaction() as tx:
                return await fleets.apply(
                    tx, terms, lambda requirements: offered(self._world, requirements), again=record.again
                )


def _terms(record: FleetRecord) -> FleetTerms:
    """
    Raises:
        InvalidConfiguration
    """
    fleet = parse_fleet(record.configuration)
    if fleet.name is not None and fleet.name != record.name:
        message = f"is {fleet.name!r}, but the fleet is called {record.name!r}"
        raise InvalidConfiguration([FieldError(path="name", message=message)])
    if fleet.nodes is None or fleet.blocks == "auto":
        path, what = ("nodes", "is missing") if fleet.nodes is None else ("blocks", "auto is not supported yet")
        hint = "such as nodes: 0..4" if fleet.nodes is None else "write a number"
        raise InvalidConfiguration([FieldError(path=path, message=what, hint=hint)])
    idle = IDLE if fleet.idle_duration is None else fleet.idle_duration
    return FleetTerms(
        project=record.project,
        name=record.name,
        nodes_min=fleet.nodes.min,
        nodes_max=fleet.nodes.max,
        placement=fleet.placement,
        blocks=fleet.blocks,
        idle_duration=None if idle == "off" else float(idle),
        requirements=fleet_requirements(fleet),
        configuration=record.configuration,
    )
