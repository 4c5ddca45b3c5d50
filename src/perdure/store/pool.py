"""What is free in a project, as the walk along its queue needs it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from perdure.core.allocation import FleetRoom, InstanceState, Offers, Pool
from perdure.model.resources import Offer
from perdure.model.statuses import InstanceStatus
from perdure.store import parsing

ALIKE = 10_000
"""More instances of one kind than a project has."""

_POOL = """
    SELECT f.id AS fleet, f.name AS fleet_name, f.status AS fleet_status, f.nodes_max, f.placement, f.blocks,
           f.idle_duration, CAST(f.requirements AS text) AS requirements,
           has.living, has.nums, has.backend, has.region,
           i.id, i.num, i.name, i.status, i.total_blocks, i.busy_blocks, i.address,
           CAST(CASE WHEN i.offer IS NULL THEN i.offers ELSE jsonb_build_array(i.offer) END AS text) AS offers
    FROM fleets f
    CROSS JOIN LATERAL (
        SELECT count(*) AS living, array_agg(i.num) AS nums,
               (array_agg(i.backend ORDER BY i.num) FILTER (WHERE i.status <> 'terminating'))[1] AS backend,
               (array_agg(i.region ORDER BY i.num) FILTER (WHERE i.status <> 'terminating'))[1] AS region
        FROM instances i WHERE i.fleet_id = f.id AND i.status <> 'terminated'
    ) has
    LEFT JOIN LATERAL (
        SELECT *, row_number() OVER (
            PARTITION BY coalesce(offer, offers), status, busy_blocks ORDER BY num) AS place
        FROM instances
        WHERE fleet_id = f.id AND f.status = 'active' {free}
            AND status IN ('pending', 'provisioning', 'idle', 'busy')
    ) i ON i.place <= :most
    WHERE f.project_id = :project AND f.status <> 'terminated'
    ORDER BY f.created_at, f.id, i.num
"""
"""One row for each instance, and one for a fleet that has none: all in one round trip, since locks are held."""

_FREE, _ALL = text(_POOL.format(free="AND busy_blocks < total_blocks")), text(_POOL.format(free=""))

_KINDS = text("""
    SELECT fleet_id, offers, count(*) AS living FROM (
        SELECT fleet_id,
               CAST(CASE WHEN offer IS NULL THEN offers ELSE jsonb_build_array(offer) END AS text) AS offers
        FROM instances
        WHERE fleet_id = ANY(:fleets) AND status IN ('pending', 'provisioning', 'idle', 'busy')
    ) one GROUP BY fleet_id, offers
""")


async def load(
    tx: AsyncConnection, project_id: UUID, offers: Offers, *, busy: bool = False, most: int = ALIKE
) -> Pool:
    """Fleets and instances that take work.

    Args:
        busy: also those that have no free block, for saying why a claim does not fit.
        most: of instances that are alike, since nobody needs to see more than could be granted.
    """
    fleets: dict[UUID, FleetRoom] = {}
    instances: list[InstanceState] = []
    for row in await tx.execute(_ALL if busy else _FREE, {"project": project_id, "most": most}):
        if row.fleet not in fleets:
            fleets[row.fleet] = _fleet(row)
        if row.id is not None:
            instances.append(_instance(row))
    return Pool(list(fleets.values()), instances, offers)


async def add_kinds(tx: AsyncConnection, pool: Pool) -> None:
    """What each fleet consists of: a claim that may reserve needs it."""
    kinds: dict[UUID, list[tuple[tuple[Offer, ...], int]]] = {}
    for row in await tx.execute(_KINDS, {"fleets": [fleet.id for fleet in pool.fleets]}):
        kinds.setdefault(row.fleet_id, []).append((parsing.offers(row.offers), row.living))
    for fleet in pool.fleets:
        fleet.kinds = tuple(kinds.get(fleet.id, ()))


def _fleet(row: Row[Any]) -> FleetRoom:
    return FleetRoom(
        id=row.fleet,
        name=row.fleet_name,
        active=row.fleet_status == "active",
        nodes_max=row.nodes_max,
        cluster=row.placement == "cluster",
        blocks=row.blocks,
        requirements=parsing.requirements(row.requirements),
        idle_duration=row.idle_duration,
        living=row.living,
        nums=set(row.nums or ()),
        pin=(row.backend, row.region) if row.backend else None,
    )


def _instance(row: Row[Any]) -> InstanceState:
    return InstanceState(
        id=row.id,
        fleet_id=row.fleet,
        num=row.num,
        name=row.name,
        status=InstanceStatus(row.status),
        offers=parsing.offers(row.offers),
        total_blocks=row.total_blocks,
        busy_blocks=row.busy_blocks,
        address=row.address,
    )
