"""Giving blocks back. Whoever calls holds the project's lock."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
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
    ), closed AS (
        UPDATE claims SET status = :status, ended_at = now(), message = :message
        WHERE id = :claim AND (
            status IN ('granted', 'ready')
            AND (SELECT count(*) FROM freed) = (SELECT count(*) FROM holdings WHERE claim_id = :claim)
            OR status = 'waiting' AND :leave)
        RETURNING id
    ), less AS (
        UPDATE instances i SET
            busy_blocks = i.busy_blocks - counted.blocks,
            status = CASE WHEN i.status = 'busy' AND i.busy_blocks = counted.blocks THEN 'idle' ELSE i.status END,
            idle_since = CASE WHEN i.busy_blocks = counted.blocks THEN now() ELSE i.idle_since END,
            keep_until = now() + CAST(:keep AS float) * interval '1 second'
        FROM counted WHERE i.id = counted.instance_id
        RETURNING i.id, i.status, i.busy_blocks, i.fleet_id, i.idle_duration
    )
    SELECT less.id, less.busy_blocks = 0 AND (
               less.status = 'pending' OR f.status = 'terminating' OR less.idle_duration < :look) AS doubtful,
           EXISTS (SELECT 1 FROM closed) AS closed
    FROM (SELECT 1) one LEFT JOIN less ON true LEFT JOIN fleets f ON f.id = less.fleet_id
""")
"""A statement sees the rows as they were before it, so that the claim is empty when all it held is freed."""

_CORDON = text("""
    UPDATE instances i SET status = 'terminating', reason = :reason, message = :message, idle_since = NULL
    WHERE i.id = :id AND i.busy_blocks = 0 AND i.status IN ('pending', 'provisioning', 'idle')
    RETURNING i.id
""")

_UNWANTED = text("""
    SELECT f.status = 'terminating' AS doomed,
           i.status = 'pending' AND f.nodes_min < (
               SELECT count(*) FROM instances l
               WHERE l.fleet_id = f.id AND l.status NOT IN ('terminating', 'terminated')) AS unmade
    FROM instances i JOIN fleets f ON f.id = i.fleet_id
    WHERE i.id = :id AND i.busy_blocks = 0 AND i.status IN ('pending', 'provisioning', 'idle')
""")

LOOK = 300.0
"""Seconds. Instances look at least this often whether their idle time is over; those that may idle for less are
told when it begins."""


@dataclass(frozen=True)
class Released:
    """What came free."""

    instances: frozenset[UUID] = frozenset()
    doubtful: frozenset[UUID] = frozenset()
    """Of these, those that may have to go soon, or at once."""

    closed: bool = False
    """The claim holds nothing any more, since now."""

    def __or__(self, other: Released) -> Released:
        return Released(
            self.instances | other.instances, self.doubtful | other.doubtful, self.closed or other.closed
        )


async def release(
    tx: AsyncConnection,
    claim_id: UUID,
    *,
    node: int | None = None,
    leave: bool = False,
    spare_jobs: bool = False,
    keep: float = 0.0,
    status: str = "released",
    message: str = "",
) -> Released:
    """Give back what a claim holds (of one node), and close the claim when that was the last of it.

    Args:
        leave: the queue too, if it waits.
        spare_jobs: leave what is under a job that has not ended.
        keep: seconds for which the instances are not retired.
        status: of the claim, once it holds nothing.
    """
    values = {
        "claim": claim_id,
        "node": node,
        "leave": leave,
        "spare_jobs": spare_jobs,
        "keep": keep,
        "status": status,
        "message": message,
        "look": LOOK,
    }
    rows = (await tx.execute(_FREE, values)).all()
    freed = [row for row in rows if row.id is not None]
    return Released(
        frozenset(row.id for row in freed), frozenset(row.id for row in freed if row.doubtful), rows[0].closed
    )


async def hand_on(
    tx: AsyncConnection, project_id: UUID, doubtful: Iterable[UUID], offers: Offers
) -> tuple[Nudge, ...]:
    """Grant what came free to whoever waits; then let go of instances that nobody wants: those of a fleet that is
    being deleted, and those the provider has not even been asked for. Those that idle for a short time are told."""
    nudges = [it.nudge for it in await queue.grant_waiting(tx, project_id, offers)]
    for instance_id in sorted(doubtful):
        row = (await tx.execute(_UNWANTED, {"id": instance_id})).one_or_none()
        if row is None:
            continue
        if row.doomed:
            nudges += await cordon(tx, instance_id, InstanceReason.FLEET_DELETED, "its fleet is being deleted")
        elif row.unmade:
            message = "whoever wanted it no longer does"
            nudges += await cordon(tx, instance_id, InstanceReason.TERMINATED_BY_USER, message)
        else:
            nudges.append(look_at_instance(instance_id))
    return tuple(nudges)


async def cordon(tx: AsyncConnection, instance_id: UUID, reason: InstanceReason, message: str = "") -> list[Nudge]:
    """Mark an instance that nobody holds as terminating; its workflow is to be told."""
    values = {"id": instance_id, "reason": reason.value, "message": message}
    if (await tx.execute(_CORDON, values)).one_or_none() is None:
        return []
    return [look_at_instance(instance_id)]


def look_at_instance(instance_id: UUID) -> Nudge:
    """Its row has changed: its idle time has begun, or it is to be terminated."""
    return Nudge(workflow_id=instance_workflow_id(instance_id), news=InstanceStop())


def look_at_fleet(project: str, name: str) -> Nudge:
    return Nudge(workflow_id=fleet_workflow_id(project, name), news=FleetChanged())
