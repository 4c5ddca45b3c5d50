"""What is free in a project, as the walk along its queue needs it."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from perdure.core.allocation import FleetRoom, InstanceState, Offers, Pool
from perdure.model.resources import Offer
from perdure.model.statuses import InstanceStatus
from perdure.store import parsing

_FLEETS = text("""
    SELECT f.id, f.name, f.status, f.nodes_max, f.placement, f.blocks, f.idle_duration,
           CAST(f.requirements AS text) AS requirements, has.living, has.nums, has.backend, has.region
    FROM fleets f
    CROSS JOIN LATERAL (
        SELECT count(*) AS living, array_agg(i.num) AS nums,
               (array_agg(i.backend ORDER BY i.num) FILTER (WHERE i.status <> 'terminating'))[1] AS backend,
               (array_agg(i.region ORDER BY i.num) FILTER (WHERE i.status <> 'terminating'))[1] AS region
        FROM instances i WHERE i.fleet_id = f.id AND i.status <> 'terminated'
    ) has
    WHERE f.project_id = :project AND f.status <> 'terminated'
    ORDER BY f.created_at, f.id
""")

_INSTANCE = """
    SELECT id, fleet_id, num, name, status, total_blocks, busy_blocks, address,
           CAST(CASE WHEN offer IS NULL THEN offers ELSE jsonb_build_array(offer) END AS text) AS offers
    FROM instances
"""

_FREE = text(f"""{_INSTANCE}
    WHERE fleet_id = ANY(:fleets) AND busy_blocks < total_blocks
      AND status IN ('pending', 'provisioning', 'idle', 'busy')
    ORDER BY fleet_id, num
""")

_ALL = text(f"""{_INSTANCE}
    WHERE fleet_id = ANY(:fleets) AND status IN ('pending', 'provisioning', 'idle', 'busy')
    ORDER BY fleet_id, num
""")

_KINDS = text("""
    SELECT fleet_id, offers, count(*) AS living FROM (
        SELECT fleet_id,
               CAST(CASE WHEN offer IS NULL THEN offers ELSE jsonb_build_array(offer) END AS text) AS offers
        FROM instances
        WHERE fleet_id = ANY(:fleets) AND status IN ('pending', 'provisioning', 'idle', 'busy')
    ) one GROUP BY fleet_id, offers
""")


async def load(tx: AsyncConnection, project_id: UUID, offers: Offers, *, busy: bool = False) -> Pool:
    """Fleets and instances that take work; ``busy``: also those that have no free block, for saying why a claim
    does not fit."""
    fleets = [
        FleetRoom(
            id=row.id,
            name=row.name,
            active=row.status == "active",
            nodes_max=row.nodes_max,
            cluster=row.placement == "cluster",
            blocks=row.blocks,
            requirements=parsing.requirements(row.requirements),
            idle_duration=row.idle_duration,
            living=row.living,
            nums=set(row.nums or ()),
            pin=(row.backend, row.region) if row.backend else None,
        )
        for row in await tx.execute(_FLEETS, {"project": project_id})
    ]
    ids = [fleet.id for fleet in fleets if fleet.active]
    instances = [
        InstanceState(
            id=row.id,
            fleet_id=row.fleet_id,
            num=row.num,
            name=row.name,
            status=InstanceStatus(row.status),
            offers=parsing.offers(row.offers),
            total_blocks=row.total_blocks,
            busy_blocks=row.busy_blocks,
            address=row.address,
        )
        for row in await tx.execute(_ALL if busy else _FREE, {"fleets": ids})
    ]
    return Pool(fleets, instances, offers)


async def add_kinds(tx: AsyncConnection, pool: Pool) -> None:
    """What each fleet consists of: a claim that may reserve needs it."""
    kinds: dict[UUID, list[tuple[tuple[Offer, ...], int]]] = {}
    for row in await tx.execute(_KINDS, {"fleets": [fleet.id for fleet in pool.fleets]}):
        kinds.setdefault(row.fleet_id, []).append((parsing.offers(row.offers), row.living))
    for fleet in pool.fleets:
        fleet.kinds = tuple(kinds.get(fleet.id, ()))
