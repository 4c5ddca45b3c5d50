"""Claims: asking for all nodes of a replica, and giving back."""

from __future__ import annotations

import hashlib
from typing import Any
from uuid import UUID

from sqlalchemy import DateTime, Row, bindparam, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from perdure.core.allocation import Offers, Pool, Wish
from perdure.core.choices import choices, failures
from perdure.model.events import ClaimGranted, Nudge, Placement
from perdure.model.messages import ClaimAnswer, ClaimRequest
from perdure.model.resources import Offer, OfferFailure
from perdure.model.statuses import ClaimStatus
from perdure.store import parsing, pool, projects, queue, releases

_INSERT = text("""
    WITH project AS (
        SELECT id FROM projects WHERE name = :project FOR NO KEY UPDATE
    ), made AS (
        INSERT INTO claims (id, project_id, run_id, owner, replica, submission, nodes, priority, requirements,
                            shape, wait, idle_duration, queue_patience, keep, status, message,
                            queued_at, not_before)
        SELECT :id, project.id, :run, :owner, :replica, :submission, :nodes, :priority, :requirements, :shape,
               :wait, :idle_duration, :queue_patience, :keep, 'waiting', '', clock_timestamp(), :not_before
        FROM project
        ON CONFLICT (id) DO NOTHING RETURNING id
    )
    SELECT project.id, EXISTS (SELECT 1 FROM made) AS made FROM project
""").bindparams(bindparam("requirements", type_=JSONB), bindparam("not_before", type_=DateTime(timezone=True)))
"""With the project's lock, which is taken first."""

_WAITS = text("UPDATE claims SET message = :message, tried = :tried WHERE id = :id").bindparams(
    bindparam("tried", type_=JSONB)
)

_REFUSE = text("""
    UPDATE claims SET status = 'refused', message = :message, tried = :tried, ended_at = now()
    WHERE id = :id AND status = 'waiting'
""").bindparams(bindparam("tried", type_=JSONB))

_PLACES = text("""
    SELECT h.node, i.id, i.name, i.status, i.address, i.backend, i.offers, i.offer
    FROM (SELECT DISTINCT node, instance_id FROM holdings WHERE claim_id = :id) h
    JOIN instances i ON i.id = h.instance_id ORDER BY h.node
""")


async def claim(tx: AsyncConnection, request: ClaimRequest, offers: Offers) -> ClaimAnswer:
    """Ask for all nodes of a replica: granted if they fit now and nobody in front wants them; else the claim waits,
    or is refused. Asking again gives the same answer, or what has become of the claim since."""
    project_id, new = await _insert(tx, request)
    if not new and (known := await answer(tx, request.claim_id)).status is not ClaimStatus.WAITING:
        told = await untold(tx, project_id)
        return known.but(again=True, nudges=tuple(it for it in told if it.workflow_id != request.owner))
    granted = await queue.grant_waiting(tx, project_id, offers)
    nudges = tuple(it.nudge for it in granted if it.claim_id != request.claim_id)
    for it in granted:
        if it.claim_id == request.claim_id:
            status = ClaimStatus.READY if it.news.ready else ClaimStatus.GRANTED
            return ClaimAnswer(status=status, placements=it.news.placements, nudges=nudges)
    return await _not_now(tx, request, project_id, offers, nudges)


async def _insert(tx: AsyncConnection, request: ClaimRequest) -> tuple[UUID, bool]:
    """The project, which is locked now, and whether the claim is new."""
    row = (await tx.execute(_INSERT, _values(request))).one_or_none()
    if row is None:
        await projects.ensure(tx, request.project)
        row = (await tx.execute(_INSERT, _values(request))).one()
    return row.id, row.made


async def answer(tx: AsyncConnection, claim_id: UUID) -> ClaimAnswer:
    """How a claim stands."""
    row = (
        await tx.execute(text("SELECT status, message, tried FROM claims WHERE id = :id"), {"id": claim_id})
    ).one()
    return ClaimAnswer(
        status=ClaimStatus(row.status),
        placements=await placements(tx, claim_id),
        message=row.message,
        tried=parsing.FAILURES.validate_python(row.tried),
    )


async def placements(tx: AsyncConnection, claim_id: UUID) -> tuple[Placement, ...]:
    """What a claim holds, in the order of its nodes."""
    return tuple(_placement(row) for row in await tx.execute(_PLACES, {"id": claim_id}))


async def withdraw(tx: AsyncConnection, claim_id: UUID, offers: Offers) -> tuple[Nudge, ...]:
    """Leave the queue, or give back what is held; a block under a job that has not ended is given back by its end.

    What comes free is granted at once. Doing it again changes nothing.
    """
    query = text("""
        SELECT p.id FROM projects p JOIN claims c ON c.project_id = p.id WHERE c.id = :id FOR NO KEY UPDATE OF p
    """)
    project_id = (await tx.execute(query, {"id": claim_id})).scalar()
    if project_id is None:
        return ()
    released = await releases.release(tx, claim_id, leave=True, spare_jobs=True)
    if not released.closed and not released.instances:
        return await untold(tx, project_id)
    return await releases.hand_on(tx, project_id, released.doubtful, offers)


async def untold(tx: AsyncConnection, project_id: UUID) -> tuple[Nudge, ...]:
    """Grants of the last minutes that nobody has acted on, as far as is known.

    For a step that finds its work done: its first try was cut off after the commit, and whoever it granted to may
    never have been told. To tell twice does no harm; the sweep would come a minute later.
    """
    query = text("""
        SELECT c.id, c.run_id, c.owner, c.status FROM claims c
        WHERE c.project_id = :project AND c.status IN ('granted', 'ready')
          AND c.granted_at > now() - interval '5 minutes'
          AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.claim_id = c.id)
          AND c.nodes = (SELECT count(DISTINCT h.node) FROM holdings h WHERE h.claim_id = c.id)
        ORDER BY c.granted_at, c.id LIMIT 100
    """)
    nudges: list[Nudge] = []
    for row in (await tx.execute(query, {"project": project_id})).all():
        places = await placements(tx, row.id)
        news = ClaimGranted(run_id=row.run_id, claim_id=row.id, placements=places, ready=row.status == "ready")
        nudges.append(Nudge(workflow_id=row.owner, news=news))
    return tuple(nudges)


async def _not_now(
    tx: AsyncConnection, request: ClaimRequest, project_id: UUID, offers: Offers, nudges: tuple[Nudge, ...]
) -> ClaimAnswer:
    wish = Wish(request.claim_id, request.nodes, request.requirements, shape(request))
    state = await pool.load(tx, project_id, offers, busy=True)
    tried = failures(state, wish)
    message = _in_words(request, [fleet.name for fleet in state.fleets], tried)
    values = {"id": request.claim_id, "message": message, "tried": [it.model_dump(mode="json") for it in tried]}
    if request.wait:
        await tx.execute(_WAITS, values)
        return ClaimAnswer(status=ClaimStatus.WAITING, message=message, tried=tried, nudges=nudges)
    if not request.keep and _worth_waiting(state, wish):
        message += "; `retry: true` makes a run wait for a place"
    await tx.execute(_REFUSE, values | {"message": message})
    return ClaimAnswer(status=ClaimStatus.REFUSED, message=message, tried=tried, nudges=nudges)


def _worth_waiting(state: Pool, wish: Wish) -> bool:
    """Some fleet could hold all of it, were it not for others."""
    return any(
        it.fleet.nodes_max is None or it.fleet.nodes_max >= wish.nodes
        for it in choices(state, wish)
        if it.availability != "available"
    )


def shape(request: ClaimRequest) -> str:
    """Hash of what is asked for."""
    text = f"{request.nodes} {request.requirements.model_dump_json()}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _in_words(request: ClaimRequest, fleets: list[str], tried: tuple[OfferFailure, ...]) -> str:
    """One sentence with the nearest miss; the rest is kept beside it."""
    named = request.requirements.fleets
    if not fleets:
        return f"project {request.project} has no fleet: apply a configuration of `type: fleet` to make one"
    if named and not set(named) & set(fleets):
        return f"no fleet is called {' or '.join(named)}; there are: {', '.join(fleets)}"
    asked = "an instance" if request.nodes == 1 else f"{request.nodes} instances"
    first = f": {tried[0].words}" if tried else ""
    run = request.owner.rsplit("/", 1)[-1]
    more = f"; {len(tried) - 1} more in `perdure run get {run}`" if len(tried) > 1 else ""
    return f"no capacity for {asked}{first}{more}"


def _values(request: ClaimRequest) -> dict[str, Any]:
    return {
        "id": request.claim_id,
        "project": request.project,
        "run": request.run_id,
        "owner": request.owner,
        "replica": request.replica,
        "submission": request.submission,
        "nodes": request.nodes,
        "priority": request.priority,
        "requirements": request.requirements.model_dump(mode="json"),
        "shape": shape(request),
        "wait": request.wait,
        "idle_duration": request.idle_duration,
        "queue_patience": request.queue_patience,
        "keep": request.keep,
        "not_before": request.not_before,
    }


def _placement(row: Row[Any]) -> Placement:
    offer = Offer.model_validate(row.offer or row.offers[0])
    return Placement(
        node=row.node,
        instance_id=row.id,
        instance_name=row.name,
        fresh=row.status == "pending",
        address=row.address if row.status in ("idle", "busy") else None,
        backend=row.backend,
        price=offer.price,
    )
