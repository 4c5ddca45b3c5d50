"""Fleets: what they are allowed, and the instances they must have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Row, bindparam, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from perdure.core.allocation import Offers, Seat, Wish
from perdure.model.events import Nudge, Placement
from perdure.model.messages import FleetView
from perdure.model.resources import Requirements
from perdure.model.statuses import InstanceReason
from perdure.store import instances, pool, projects, releases


@dataclass(frozen=True)
class FleetTerms:
    """A fleet as it is to be."""

    project: str
    name: str
    nodes_min: int
    nodes_max: int | None
    placement: str
    blocks: int
    idle_duration: float | None
    requirements: Requirements
    configuration: dict[str, Any]


_UPSERT = text("""
    INSERT INTO fleets (id, project_id, name, status, nodes_min, nodes_max, placement, blocks, idle_duration,
                        requirements, configuration)
    VALUES (:id, :project, :name, 'active', :nodes_min, :nodes_max, :placement, :blocks, :idle_duration,
            :requirements, :configuration)
    ON CONFLICT (project_id, name) WHERE status <> 'terminated' DO UPDATE SET
        nodes_min = EXCLUDED.nodes_min, nodes_max = EXCLUDED.nodes_max, placement = EXCLUDED.placement,
        blocks = EXCLUDED.blocks, idle_duration = EXCLUDED.idle_duration,
        requirements = EXCLUDED.requirements, configuration = EXCLUDED.configuration
    RETURNING id, status
""").bindparams(bindparam("requirements", type_=JSONB), bindparam("configuration", type_=JSONB))

_FAILED_TO_START = [InstanceReason.NO_OFFERS, InstanceReason.ERROR, InstanceReason.PROVISIONING_TIMEOUT]

_LIVING = text("""
    SELECT id, name, num, status, busy_blocks, backend FROM instances
    WHERE fleet_id = :fleet AND status <> 'terminated' ORDER BY num
""")


_LAST_FAILED = text("""
    SELECT name || ': ' || message FROM instances
    WHERE fleet_id = :fleet AND reason = ANY(:reasons)
      AND created_at = (SELECT max(created_at) FROM instances WHERE fleet_id = :fleet)
    ORDER BY num LIMIT 1
""")
"""Those made by one transaction have one ``created_at``."""


async def apply(tx: AsyncConnection, terms: FleetTerms, offers: Offers, *, again: bool = True) -> FleetView:
    """Write the fleet, make the rows of the instances it must have, and grant what its new room allows.

    Instances above a lower ``nodes.max`` that nobody holds are let go. Doing it again changes nothing.

    Args:
        again: make instances also if those made last could not be had.
    """
    project_id = await projects.ensure(tx, terms.project)
    await projects.lock(tx, project_id)
    row = (await tx.execute(_UPSERT, _values(terms, project_id))).one()
    if row.status == "terminating":
        return await _view(tx, row.id, [])
    nudges = await _shrink(tx, row.id, terms.nodes_max)
    nudges += await releases.hand_on(tx, project_id, [], offers)
    why = (await tx.execute(_LAST_FAILED, {"fleet": row.id, "reasons": _FAILED_TO_START})).scalar() or ""
    if again or not why:
        await _fill(tx, project_id, row.id, terms, offers)
    return (await _view(tx, row.id, nudges, terms.nodes_min)).but(why=why)


async def delete(tx: AsyncConnection, project: str, name: str) -> FleetView:
    """Take no more claims, let go of every instance that nobody holds, and be terminated when the last is gone."""
    project_id = await projects.ensure(tx, project)
    await projects.lock(tx, project_id)
    query = text("SELECT id FROM fleets WHERE project_id = :project AND name = :name AND status <> 'terminated'")
    fleet_id = (await tx.execute(query, {"project": project_id, "name": name})).scalar()
    if fleet_id is None:
        return FleetView(gone=True)
    query = text("UPDATE fleets SET status = 'terminating' WHERE id = :id AND status <> 'terminating'")
    await tx.execute(query, {"id": fleet_id})
    nudges: list[Nudge] = []
    for one in await _living(tx, fleet_id):
        nudges += await releases.cordon(tx, one.id, InstanceReason.FLEET_DELETED, "its fleet is being deleted")
    view = await _view(tx, fleet_id, nudges)
    if view.live == 0:
        query = text("UPDATE fleets SET status = 'terminated', ended_at = now() WHERE id = :id")
        await tx.execute(query, {"id": fleet_id})
    return view.but(gone=view.live == 0)


async def _shrink(tx: AsyncConnection, fleet_id: UUID, nodes_max: int | None) -> list[Nudge]:
    """Let go of free instances above ``nodes.max``, the highest number first."""
    if nodes_max is None:
        return []
    active = [one for one in await _living(tx, fleet_id) if one.status != "terminating"]
    nudges: list[Nudge] = []
    excess = len(active) - nodes_max
    for one in reversed(active):
        if excess > 0 and (told := await releases.cordon(tx, one.id, InstanceReason.MAX_INSTANCES_LIMIT)):
            nudges += told
            excess -= 1
    return nudges


async def _fill(tx: AsyncConnection, project_id: UUID, fleet_id: UUID, terms: FleetTerms, offers: Offers) -> None:
    """Placeholders up to ``nodes.min``, of the cheapest offers that the fleet's own requirements allow."""
    state = await pool.load(tx, project_id, offers)
    fleet = next(it for it in state.fleets if it.id == fleet_id)
    active = sum(one.status != "terminating" for one in await _living(tx, fleet_id))
    missing = min(terms.nodes_min - active, fleet.room)
    wish = Wish(fleet_id, 1, terms.requirements, f"fleet {fleet_id}", idle_duration=terms.idle_duration)
    choice = state.makeable(wish, fleet)
    while missing > 0 and choice:
        num = next(num for num in range(len(fleet.nums) + 1) if num not in fleet.nums)
        seat = Seat(0, fleet, fleet.blocks, num=num, offers=choice)
        await instances.make(tx, project_id, uuid4(), seat, terms.idle_duration)
        fleet.nums.add(num)
        missing -= 1


async def _view(tx: AsyncConnection, fleet_id: UUID, nudges: Sequence[Nudge], nodes_min: int = 0) -> FleetView:
    living = await _living(tx, fleet_id)
    active = sum(one.status != "terminating" for one in living)
    return FleetView(
        fleet_id=fleet_id,
        missing=max(nodes_min - active, 0),
        fresh=tuple(
            Placement(node=0, instance_id=one.id, instance_name=one.name, fresh=True, backend=one.backend)
            for one in living
            if one.status == "pending"
        ),
        live=len(living),
        nudges=tuple(nudges),
    )


async def _living(tx: AsyncConnection, fleet_id: UUID) -> Sequence[Row[Any]]:
    return (await tx.execute(_LIVING, {"fleet": fleet_id})).all()


def _values(terms: FleetTerms, project_id: UUID) -> dict[str, Any]:
    return {
        "id": uuid4(),
        "project": project_id,
        "name": terms.name,
        "nodes_min": terms.nodes_min,
        "nodes_max": terms.nodes_max,
        "placement": terms.placement,
        "blocks": terms.blocks,
        "idle_duration": terms.idle_duration,
        "requirements": terms.requirements.model_dump(mode="json"),
        "configuration": terms.configuration,
    }
