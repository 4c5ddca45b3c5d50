"""The life of an instance as rows: ready, lost, retired, gone. Each is one transaction under the project's lock."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Row, bindparam, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from perdure.core.allocation import Offers
from perdure.model.errors import NotFound
from perdure.model.events import ClaimFailed, ClaimGranted, Nudge
from perdure.model.messages import InstanceLost, InstanceReady, InstanceView
from perdure.model.statuses import InstanceReason, InstanceStatus
from perdure.store import claims, projects, releases

_VIEW = text("""
    SELECT i.id, i.status, i.reason, i.backend, i.name, i.idle_duration, i.idle_since, i.keep_until, i.project_id,
           now() AS now, f.status AS fleet_status, f.nodes_min, f.name AS fleet, p.name AS project,
           (SELECT count(*) FROM instances l
            WHERE l.fleet_id = f.id AND l.status NOT IN ('terminating', 'terminated')) AS active
    FROM instances i JOIN fleets f ON f.id = i.fleet_id JOIN projects p ON p.id = i.project_id
    WHERE i.id = :id
""")

_READY = text("""
    UPDATE instances SET status = CASE WHEN busy_blocks > 0 THEN 'busy' ELSE 'idle' END, address = :address,
           heard_at = now(), idle_since = CASE WHEN busy_blocks = 0 THEN now() END
    WHERE id = :id AND status IN ('pending', 'provisioning')
""")

_ALL_READY = text("""
    SELECT c.id, c.run_id, c.owner FROM claims c
    WHERE c.id IN (SELECT claim_id FROM holdings WHERE instance_id = :id)
      AND (c.status = 'granted'
           OR c.status = 'ready' AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.claim_id = c.id))
      AND NOT EXISTS (
          SELECT 1 FROM holdings h JOIN instances i ON i.id = h.instance_id
          WHERE h.claim_id = c.id AND (i.status NOT IN ('idle', 'busy') OR i.address IS NULL))
    ORDER BY c.id
""")

_LOST = text("""
    UPDATE instances SET status = 'terminating', reason = :reason, message = :message, idle_since = NULL,
           failures = failures || (
               SELECT coalesce(jsonb_agg(it), '[]') FROM jsonb_array_elements(:tried) it
               WHERE NOT failures @> jsonb_build_array(it))
    WHERE id = :id AND status IN ('pending', 'provisioning', 'idle', 'busy') RETURNING id
""").bindparams(bindparam("tried", type_=JSONB))

_TRIED = text("UPDATE claims SET tried = :tried WHERE id = :id").bindparams(bindparam("tried", type_=JSONB))

_HOLDERS = text("""
    SELECT c.id, c.run_id, c.owner, c.status, c.keep, array_agg(DISTINCT h.node) AS nodes
    FROM claims c JOIN holdings h ON h.claim_id = c.id
    WHERE h.instance_id = :id GROUP BY c.id ORDER BY c.id
""")

_GONE = text("""
    WITH held AS (DELETE FROM holdings WHERE instance_id = :id)
    UPDATE instances SET status = 'terminated', busy_blocks = 0, idle_since = NULL, ended_at = now()
    WHERE id = :id AND status <> 'terminated' RETURNING id
""")

_CLOSE_EMPTY = text("""
    UPDATE claims c SET status = 'released', ended_at = now()
    WHERE c.id = ANY(:claims) AND c.status IN ('granted', 'ready')
      AND NOT EXISTS (SELECT 1 FROM holdings h WHERE h.claim_id = c.id)
""")


async def view(tx: AsyncConnection, instance_id: UUID, nudges: tuple[Nudge, ...] = ()) -> InstanceView:
    """An instance as its workflow needs it. Raises: NotFound."""
    row = await _load(tx, instance_id)
    return InstanceView(
        instance_id=row.id,
        status=InstanceStatus(row.status),
        backend=row.backend,
        name=row.name,
        idle_until=_idle_until(row) if row.active > row.nodes_min else None,
        idle_duration=None if row.idle_duration is None else max(row.idle_duration, releases.LOOK),
        reason=InstanceReason(row.reason) if row.reason else None,
        nudges=nudges,
    )


async def ready(tx: AsyncConnection, news: InstanceReady, offers: Offers) -> InstanceView:
    """Its shim answers: tell the claims that have all their instances now; if nobody holds it, grant it."""
    row = await _locked(tx, news.instance_id)
    await tx.execute(_READY, {"id": row.id, "address": news.address})
    nudges: list[Nudge] = []
    for claim in (await tx.execute(_ALL_READY, {"id": row.id})).all():
        await tx.execute(text("UPDATE claims SET status = 'ready' WHERE id = :id"), {"id": claim.id})
        places = await claims.placements(tx, claim.id)
        told = ClaimGranted(run_id=claim.run_id, claim_id=claim.id, placements=places, ready=True)
        nudges.append(Nudge(workflow_id=claim.owner, news=told))
    doomed = [row.id] if row.fleet_status == "terminating" else []
    nudges += await releases.hand_on(tx, row.project_id, doomed, offers)
    return await view(tx, row.id, tuple(nudges))


async def lost(tx: AsyncConnection, news: InstanceLost, offers: Offers) -> InstanceView:
    """It could not be had, or is out of reach for good: no new work goes there, and its claims fail.

    A claim that was still gathering its instances loses the others too. One whose jobs may run already keeps the
    others, until each job has ended: they are not known to be clean before.
    """
    row = await _locked(tx, news.instance_id)
    tried = [it.model_dump(mode="json") for it in news.tried]
    values = {"id": row.id, "reason": news.reason.value, "message": news.message, "tried": tried}
    if (await tx.execute(_LOST, values)).one_or_none() is None:
        return await view(tx, row.id, await claims.untold(tx, row.project_id))
    nudges: list[Nudge] = []
    released = releases.Released()
    for claim in (await tx.execute(_HOLDERS, {"id": row.id})).all():
        nudges.append(Nudge(workflow_id=claim.owner, news=_failed(claim, row, news)))
        if tried:
            await tx.execute(_TRIED, {"id": claim.id, "tried": tried})
        gathering = claim.status == "granted"
        for node in [None] if gathering else claim.nodes:
            released |= await releases.release(
                tx, claim.id, node=node, keep=claim.keep, status="failed", message=news.message
            )
    nudges += await releases.hand_on(tx, row.project_id, released.doubtful, offers)
    return await view(tx, row.id, tuple(nudges))


async def vanished(tx: AsyncConnection, instance_id: UUID, message: str, offers: Offers) -> tuple[Nudge, ...]:
    """Somebody ended it, and not by us: it is lost, and its workflow is told to see to the rest."""
    news = InstanceLost(instance_id=instance_id, reason=InstanceReason.UNREACHABLE, message=message)
    view = await lost(tx, news, offers)
    return (*view.nudges, releases.look_at_instance(instance_id))


async def retire(tx: AsyncConnection, instance_id: UUID) -> InstanceView:
    """Terminate it, if its idle time is over and its fleet has more instances than it must have; else say until
    when it may idle."""
    row = await _locked(tx, instance_id)
    until = _idle_until(row)
    if row.status == InstanceStatus.IDLE and until is not None and until <= row.now and row.active > row.nodes_min:
        await releases.cordon(tx, row.id, InstanceReason.IDLE_TIMEOUT, "nobody used it for its idle_duration")
    return await view(tx, instance_id)


async def gone(tx: AsyncConnection, instance_id: UUID, offers: Offers) -> InstanceView:
    """The provider says that it is gone: its number and its place in the fleet are free again."""
    row = await _locked(tx, instance_id)
    holders = [it.id for it in (await tx.execute(_HOLDERS, {"id": row.id})).all()]
    if (await tx.execute(_GONE, {"id": row.id})).one_or_none() is None:
        return await view(tx, row.id, await claims.untold(tx, row.project_id))
    await tx.execute(_CLOSE_EMPTY, {"claims": holders})
    nudges = list(await releases.hand_on(tx, row.project_id, [], offers))
    if row.fleet_status == "terminating" or row.active < row.nodes_min:
        nudges.append(releases.look_at_fleet(row.project, row.fleet))
    return await view(tx, row.id, tuple(nudges))


async def _locked(tx: AsyncConnection, instance_id: UUID) -> Row[Any]:
    """The instance, with its project's lock held."""
    await projects.lock(tx, (await _load(tx, instance_id)).project_id)
    return await _load(tx, instance_id)


async def _load(tx: AsyncConnection, instance_id: UUID) -> Row[Any]:
    row = (await tx.execute(_VIEW, {"id": instance_id})).one_or_none()
    if row is None:
        raise NotFound(f"there is no instance {instance_id}")
    return row


def _idle_until(row: Row[Any]) -> datetime | None:
    if row.status != InstanceStatus.IDLE or row.idle_since is None or row.idle_duration is None:
        return None
    until = row.idle_since + timedelta(seconds=row.idle_duration)
    return max(until, row.keep_until) if row.keep_until is not None else until


def _failed(claim: Row[Any], instance: Row[Any], news: InstanceLost) -> ClaimFailed:
    return ClaimFailed(
        run_id=claim.run_id,
        claim_id=claim.id,
        at=instance.now,
        message=f"{instance.name} could not be had: {news.message}",
        tried=news.tried,
    )
