"""Giving blocks back. Whoever calls holds the project's lock."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from perdure.core.allocation import Offers
from perdure.model.events import FleetChanged, InstanceStop, Nudge
from perdure.model.ids import fleet_workflow_id, instance_workflow_id
from perdure.model.statuses import InstanceReason
from perdure.store import queue

_FREE = text("""
    WITH freed AS (
        DELETE FROM holdings h
        WHERE h.claim_id = :claim AND (CAST(:node AS int) IS NULL OR h.node = :node) AND h.quarantined_at IS NULL
          AND NOT (:spare_jobs AND EXISTS (
              SELECT 1 FROM jobs j WHERE j.claim_id = h.claim_id AND j.node = h.node AND j.ended_at IS NULL))
        RETURNING h.instance_id
    ), counted AS (
        SELECT instance_id, count(*) AS blocks FROM freed GROUP BY instance_id
    )
    UPDATE instances i SET
        busy_blocks = i.busy_blocks - counted.blocks,
        status = CASE WHEN i.status = 'busy' AND i.busy_blocks = counted.blocks THEN 'idle' ELSE i.status END,
        idle_since = CASE WHEN i.busy_blocks = counted.blocks THEN now() ELSE i.idle_since END,
        keep_until = now() + CAST(:keep AS float) * interval '1 second'
    FROM counted WHERE i.id = counted.instance_id
    RETURNING i.id
""")

_CLOSE = text("""
    UPDATE claims SET status = :status, ended_at = now(), message = :message
    WHERE id = :claim AND status IN ('granted', 'ready')
      AND NOT EXISTS (SELECT 1 FROM holdings h WHERE h.claim_id = :claim)
""")

_CORDON = text("""
    UPDATE instances i SET status = 'terminating', reason = :reason, message = :message, idle_since = NULL
    WHERE i.id = :id AND i.busy_blocks = 0 AND i.status IN ('pending', 'provisioning', 'idle')
    RETURNING i.id
""")

_UNWANTED = text("""
    SELECT f.status = 'terminating' AS doomed FROM instances i JOIN fleets f ON f.id = i.fleet_id
    WHERE i.id = :id AND i.busy_blocks = 0 AND i.status IN ('pending', 'provisioning', 'idle')
      AND (f.status = 'terminating' OR i.status = 'pending' AND f.nodes_min < (
          SELECT count(*) FROM instances l
          WHERE l.fleet_id = f.id AND l.status NOT IN ('terminating', 'terminated')))
""")


async def release(
    tx: AsyncConnection,
    claim_id: UUID,
    *,
    node: int | None = None,
    spare_jobs: bool = False,
    keep: float = 0.0,
    status: str = "released",
    message: str = "",
) -> list[UUID]:
    """Give back what a claim holds (of one node), and close the claim when that was the last of it.

    Args:
        spare_jobs: leave what is under a job that has not ended.
        keep: seconds for which the instances are not retired.
        status: of the claim, once it holds nothing.

    Returns:
        The instances that have free blocks now.
    """
    values = {"claim": claim_id, "node": node, "spare_jobs": spare_jobs, "keep": keep}
    freed = [row.id for row in await tx.execute(_FREE, values)]
    await tx.execute(_CLOSE, {"claim": claim_id, "status": status, "message": message})
    return freed


async def hand_on(
    tx: AsyncConnection, project_id: UUID, freed: Sequence[UUID], offers: Offers
) -> tuple[Nudge, ...]:
    """Grant what came free to whoever waits; then let go of instances that nobody wants: those of a fleet that is
    being deleted, and those the provider has not even been asked for."""
    nudges = [it.nudge for it in await queue.grant_waiting(tx, project_id, offers)]
    for instance_id in freed:
        row = (await tx.execute(_UNWANTED, {"id": instance_id})).one_or_none()
        if row is None:
            continue
        reason = InstanceReason.FLEET_DELETED if row.doomed else InstanceReason.TERMINATED_BY_USER
        message = "its fleet is being deleted" if row.doomed else "whoever wanted it no longer does"
        nudges += await cordon(tx, instance_id, reason, message)
    return tuple(nudges)


async def cordon(tx: AsyncConnection, instance_id: UUID, reason: InstanceReason, message: str = "") -> list[Nudge]:
    """Mark an instance that nobody holds as terminating; its workflow is to be told."""
    values = {"id": instance_id, "reason": reason.value, "message": message}
    if (await tx.execute(_CORDON, values)).one_or_none() is None:
        return []
    return [Nudge(workflow_id=instance_workflow_id(instance_id), news=InstanceStop())]


def look_at_fleet(project: str, name: str) -> Nudge:
    return Nudge(workflow_id=fleet_workflow_id(project, name), news=FleetChanged())
