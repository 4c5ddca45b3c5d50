"""Twenty clients at once do everything that can be done to an inventory, in random order, seed by seed."""

from __future__ import annotations

import asyncio
import random
from uuid import UUID

import pytest

from perdure.model.events import ClaimFailed, ClaimGranted
from perdure.model.messages import ClaimAnswer, ClaimRequest
from perdure.model.resources import Requirements, Span
from perdure.model.statuses import ClaimStatus
from tests.support.invariants import assert_invariants
from tests.support.inventory import Inventory

CLIENTS, STEPS = 20, 12

ANYTHING = Requirements()
WHOLE = Requirements(cpu=Span(min=2), firm=("cpu",))
HALF = Requirements(cpu=Span(min=1), firm=("cpu",))
NOWHERE = Requirements(cpu=Span(min=64), firm=("cpu",))


class Chaos:
    """Clients that share what they know: the claims that were made."""

    def __init__(self, inventory: Inventory, seed: int):
        self.inventory = inventory
        self.random = random.Random(seed)
        self.claims: dict[UUID, ClaimRequest] = {}
        self.answers: dict[UUID, list[ClaimAnswer]] = {}

    async def client(self) -> None:
        steps = [self.claim, self.claim, self.claim, self.ready, self.ready, self.end, self.end]
        steps += [self.withdraw, self.lose, self.retire, self.gone, self.again]
        for _ in range(STEPS):
            await self.random.choice(steps)()

    async def claim(self) -> None:
        request, answer = await self.inventory.claim(
            nodes=self.random.choice([1, 1, 1, 2, 3]),
            priority=self.random.randrange(3),
            wait=self.random.random() < 0.8,
            requirements=self.random.choice([ANYTHING, WHOLE, HALF, NOWHERE]),
            queue_patience=self.random.choice([0.0, 600.0]),
            idle_duration=0.0,
        )
        self.claims[request.claim_id] = request
        self.answers[request.claim_id] = [answer]

    async def again(self) -> None:
        if self.claims:
            request = self.random.choice(list(self.claims.values()))
            self.answers[request.claim_id].append(await self.inventory.again(request))

    async def ready(self) -> None:
        for instance_id in await self._some("SELECT id FROM instances WHERE status IN ('pending', 'provisioning')"):
            await self.inventory.ready(instance_id)

    async def end(self) -> None:
        rows = await self.inventory.rows("""
            SELECT h.claim_id, h.node, h.instance_id FROM holdings h JOIN claims c ON c.id = h.claim_id
            WHERE c.status = 'ready' ORDER BY 1, 2
        """)
        if not rows:
            return
        row = self.random.choice(rows)
        request = self.claims.get(row.claim_id)
        if request is not None:
            await self.inventory.start(request, row.instance_id, row.node)
            await self.inventory.end(request, row.instance_id, row.node)

    async def withdraw(self) -> None:
        if self.claims:
            await self.inventory.withdraw(self.random.choice(list(self.claims)))

    async def lose(self) -> None:
        if self.random.random() < 0.3:
            for instance_id in await self._some("SELECT id FROM instances WHERE status <> 'terminated'"):
                await self.inventory.lose(instance_id)

    async def retire(self) -> None:
        for instance_id in await self._some("SELECT id FROM instances WHERE status = 'idle'"):
            await self.inventory.retire(instance_id)

    async def gone(self) -> None:
        for instance_id in await self._some("SELECT id FROM instances WHERE status = 'terminating'"):
            await self.inventory.gone(instance_id)

    async def _some(self, query: str) -> list[UUID]:
        rows = await self.inventory.rows(f"{query} ORDER BY id")
        return [self.random.choice(rows).id] if rows else []


@pytest.mark.parametrize("seed", range(3))
async def test_twenty_clients_at_once_never_break_an_invariant(inventory: Inventory, seed: int):
    await inventory.fleet("local", nodes=(0, 3))
    await inventory.fleet("parts", nodes=(1, 2), blocks=2, placement="any")
    chaos = Chaos(inventory, seed)
    await asyncio.gather(*(chaos.client() for _ in range(CLIENTS)))
    await assert_invariants(inventory.db, inventory.offers)
    await _everybody_was_told(chaos)

    for claim_id in chaos.claims:
        await inventory.withdraw(claim_id)
    await inventory.change("UPDATE jobs SET ended_at = now(), status = 'done', reason = 'x' WHERE ended_at IS NULL")
    for claim_id in chaos.claims:
        await inventory.withdraw(claim_id)
    await assert_invariants(inventory.db, inventory.offers)
    assert not await inventory.rows("SELECT * FROM holdings")


async def _everybody_was_told(chaos: Chaos) -> None:
    """Every claim that was granted, became ready or failed said so, in its answer or in a nudge to its owner; and
    no two grants of one claim say different instances."""
    places: dict[UUID, set[tuple[UUID, ...]]] = {}
    said: dict[UUID, set[str]] = {claim_id: set() for claim_id in chaos.claims}
    for nudge in chaos.inventory.told:
        if isinstance(nudge.news, ClaimGranted):
            where = tuple(place.instance_id for place in nudge.news.placements)
            places.setdefault(nudge.news.claim_id, set()).add(where)
            said[nudge.news.claim_id] |= {"granted", "ready"} if nudge.news.ready else {"granted"}
        elif isinstance(nudge.news, ClaimFailed):
            said[nudge.news.claim_id].add("failed")
    for claim_id, answers in chaos.answers.items():
        for answer in answers:
            said[claim_id].add(answer.status.value)
            if answer.status is ClaimStatus.GRANTED:
                places.setdefault(claim_id, set()).add(tuple(place.instance_id for place in answer.placements))
    assert all(len(where) == 1 for where in places.values())
    for row in await chaos.inventory.rows("SELECT id, status FROM claims"):
        if row.status in ("granted", "ready", "failed", "refused"):
            assert row.status in said[row.id], f"claim {row.id} is {row.status}, and nobody was told"
