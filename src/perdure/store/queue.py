"""The queue of waiting claims, and the walk along it that grants whatever fits.

Whoever calls ``grant_waiting`` holds the project's lock (``projects.lock``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from perdure.core.allocation import Offers, Seat, Walk, Wish, idle_duration
from perdure.model.events import ClaimGranted, Nudge, Placement
from perdure.store import instances, parsing, pool

PAGE = 32
"""Claims read at once. A walk mostly ends within the first page: what was free is taken."""

_PAGE = text("""
    SELECT id, run_id, owner, nodes, shape, idle_duration, CAST(requirements AS text) AS requirements,
           now() - queued_at > queue_patience * interval '1 second' AS overdue,
           coalesce(not_before > now(), false) AS asleep
    FROM claims
    WHERE project_id = :project AND status = 'waiting' AND id <> ALL(:seen)
      AND (shape <> ALL(:failed)
           OR shape <> ALL(:reserving) AND now() - queued_at > queue_patience * interval '1 second')
    ORDER BY priority DESC, queued_at, id
    LIMIT :limit
""")

_TAKE = text("""
    WITH want AS (
        SELECT * FROM unnest(CAST(:instances AS uuid[]), CAST(:nodes AS int[]), CAST(:blocks AS int[]))
            AS want (instance_id, node, blocks)
    ), held AS (
        INSERT INTO holdings (instance_id, block, claim_id, node)
        SELECT want.instance_id, free.block, :claim, want.node
        FROM want JOIN instances i ON i.id = want.instance_id
        CROSS JOIN LATERAL (
            SELECT block FROM generate_series(0, i.total_blocks - 1) AS block
            WHERE NOT EXISTS (SELECT 1 FROM holdings h WHERE h.instance_id = i.id AND h.block = block.block)
            ORDER BY block LIMIT want.blocks
        ) free
    ), taken AS (
        UPDATE instances i SET busy_blocks = i.busy_blocks + want.blocks, idle_since = NULL, keep_until = NULL,
               status = CASE i.status WHEN 'idle' THEN 'busy' ELSE i.status END
        FROM want WHERE i.id = want.instance_id
    )
    UPDATE claims SET status = :status, granted_at = now(), message = '' WHERE id = :claim
""")


@dataclass(frozen=True)
class Granted:
    """A claim that was granted by this walk."""

    claim_id: UUID
    owner: str
    news: ClaimGranted

    @property
    def nudge(self) -> Nudge:
        return Nudge(workflow_id=self.owner, news=self.news)


async def grant_waiting(tx: AsyncConnection, project_id: UUID, offers: Offers) -> list[Granted]:
    """Grant along the queue until nothing fits any more; says whom."""
    granted: list[Granted] = []
    while True:
        several, pages = False, _Pages(tx, project_id)
        page = await pages.next(set(), set())
        if not page:
            return granted
        most = sum(row.nodes for row in page) if len(page) < PAGE else pool.ALIKE
        walk = Walk(await pool.load(tx, project_id, offers, most=most))
        while page:
            if any(row.overdue for row in page):
                await pool.add_kinds(tx, walk.pool)
            owners = {row.id: row for row in page}
            for wish, seats in walk.along([wish_of(row) for row in page]):
                row = owners[wish.claim_id]
                granted.append(await _write(tx, project_id, row.owner, row.run_id, wish, seats))
                several = several or any(
                    seat.instance is None and seat.blocks < seat.fleet.blocks for seat in seats
                )
            page = [] if walk.pool.exhausted else await pages.next(walk.failed, walk.reserving)
        if not several:
            return granted
        # An instance to be made has blocks left for others: they are seen by another walk.


class _Pages:
    """Pages of the queue, without the claims that are known not to fit."""

    def __init__(self, tx: AsyncConnection, project_id: UUID):
        self._tx = tx
        self._project_id = project_id
        self._seen: list[UUID] = []

    async def next(self, failed: set[str], reserving: set[str]) -> Sequence[Row[Any]]:
        values = {
            "project": self._project_id,
            "seen": self._seen,
            "failed": list(failed),
            "reserving": list(reserving),
            "limit": PAGE,
        }
        page = (await self._tx.execute(_PAGE, values)).all()
        self._seen += [row.id for row in page]
        return page


def wish_of(row: Row[Any]) -> Wish:
    """A claim's row, as the walk sees it."""
    return Wish(
        claim_id=row.id,
        nodes=row.nodes,
        requirements=parsing.requirements(row.requirements),
        shape=row.shape,
        overdue=row.overdue and not row.asleep,
        asleep=row.asleep,
        idle_duration=row.idle_duration,
    )


async def _write(
    tx: AsyncConnection, project_id: UUID, owner: str, run_id: UUID, wish: Wish, seats: tuple[Seat, ...]
) -> Granted:
    """Make the rows of instances to be made, take the blocks, and mark the claim granted, or ready."""
    places = [_placement(seat) for seat in seats]
    for seat, place in zip(seats, places, strict=True):
        if seat.instance is None:
            await instances.make(tx, project_id, place.instance_id, seat, idle_duration(wish, seat.fleet))
    ready = all(place.address is not None for place in places)
    values = {
        "claim": wish.claim_id,
        "status": "ready" if ready else "granted",
        "instances": [place.instance_id for place in places],
        "nodes": [place.node for place in places],
        "blocks": [seat.blocks for seat in seats],
    }
    await tx.execute(_TAKE, values)
    news = ClaimGranted(run_id=run_id, claim_id=wish.claim_id, placements=tuple(places), ready=ready)
    return Granted(wish.claim_id, owner, news)


def _placement(seat: Seat) -> Placement:
    instance = seat.instance
    offer = instance.offers[0] if instance else seat.offers[0]
    return Placement(
        node=seat.node,
        instance_id=instance.id if instance else uuid4(),
        instance_name=seat.name,
        fresh=instance is None or instance.status.value == "pending",
        address=instance.address if instance and instance.ready else None,
        backend=offer.backend,
        price=offer.price,
    )
