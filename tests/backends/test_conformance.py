"""What every backend must do, whatever is behind it: the contract of ``perdure.backends.Backend``."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from perdure.agents.client import Agents
from perdure.backends import Backend, Order
from perdure.backends.local import LocalBackend
from perdure.backends.places import outside
from perdure.model.errors import AgentUnreachable, InstanceGone
from perdure.model.resources import Requirements
from tests.support.cloud import CloudAgents, CloudBackend, Provider, kind, served
from tests.support.waiting import eventually

INSTALLATION, EPOCH = uuid4(), 3


@dataclass
class Place:
    """One backend, as two workers have it."""

    backend: Backend
    other: Backend
    agents: Any
    end_from_outside: Callable[[UUID], None]
    """As its owner may, by hand."""

    def order(self) -> Order:
        offer = self.backend.offers(Requirements())[0]
        return Order(uuid4(), "fleet-0", INSTALLATION, EPOCH, uuid4().hex, offer)

    async def made(self) -> Order:
        order = self.order()
        await self.backend.create(order)
        return order

    async def listed(self) -> list[UUID]:
        return [there.instance_id for there in await self.backend.list()]

    async def ended(self, instance_id: UUID) -> None:
        async def gone() -> bool:
            return (await self.backend.terminate(instance_id)).gone

        await eventually(gone, "the provider to say that it is gone")

    async def answers(self, order: Order) -> bool:
        try:
            shim = await self.agents.shim(await self.other.endpoint(order.instance_id, order.token))
            return (await shim.healthcheck()).instance_id == order.instance_id
        except AgentUnreachable:
            return False


@asynccontextmanager
async def local(folder: Path) -> AsyncIterator[Place]:
    agents = Agents()
    home = folder / "h"
    one, other = LocalBackend(home, agents), LocalBackend(home, agents)

    def delete(instance_id: UUID) -> None:
        shutil.rmtree(home / "instances" / instance_id.hex[:12])

    try:
        yield Place(one, other, agents, delete)
    finally:
        for there in await one.list():
            assert (await one.terminate(there.instance_id)).gone
        one.end_remains()
        await agents.close()
        for left in outside(home):
            shutil.rmtree(left, ignore_errors=True)


@asynccontextmanager
async def cloud(folder: Path) -> AsyncIterator[Place]:
    provider = Provider(hides_new={"small": 1}, lingers=1)
    kinds = [kind("big", 2.0), kind("small", 1.0)]
    async with served(provider) as url:
        one, other = CloudBackend(url, kinds), CloudBackend(url, kinds)
        yield Place(one, other, CloudAgents(provider), provider.delete)
        await one.close()
        await other.close()


@pytest.fixture(params=[local, cloud], ids=lambda kind: kind.__name__)
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    async with request.param(tmp_path) as made:
        yield made


async def test_offers_are_the_backends_own_and_the_cheapest_comes_first(place: Place) -> None:
    offers = place.backend.offers(Requirements())
    assert {offer.backend for offer in offers} == {place.backend.name}
    assert [offer.price for offer in offers] == sorted(offer.price for offer in offers)


async def test_one_order_is_one_instance_however_often_it_is_given(place: Place) -> None:
    order = place.order()
    await asyncio.gather(*(worker.create(order) for worker in (place.backend, place.other, place.backend)))
    await place.backend.create(order)
    await eventually(place.listed, "it to be listed")
    assert await place.listed() == [order.instance_id]


async def test_what_is_listed_carries_whose_it_is_and_how_old(place: Place) -> None:
    order = await place.made()
    await eventually(place.listed, "it to be listed")
    (there,) = await place.other.list()
    assert (there.instance_id, there.installation, there.epoch) == (order.instance_id, INSTALLATION, EPOCH)
    assert 0 <= there.age < 3600


async def test_another_worker_reaches_the_agents_that_say_who_they_are(place: Place) -> None:
    order = await place.made()
    await eventually(lambda: place.answers(order), "its agents")
    assert await place.other.find(order.instance_id)
    assert await place.other.address(order.instance_id) is not None


async def test_what_was_just_made_is_never_taken_for_gone(place: Place) -> None:
    order = await place.made()
    for _ in range(3):
        try:
            await place.other.endpoint(order.instance_id, order.token)
        except AgentUnreachable as error:
            assert not isinstance(error, InstanceGone)


async def test_what_was_never_made_is_not_there_and_ends_at_once(place: Place) -> None:
    nobody = uuid4()
    assert not await place.backend.find(nobody)
    assert await place.backend.address(nobody) is None
    assert (await place.backend.terminate(nobody)).gone


async def test_a_terminated_instance_is_gone_for_everybody_and_ends_again(place: Place) -> None:
    order = await place.made()
    await eventually(lambda: place.answers(order), "its agents")
    await place.ended(order.instance_id)
    assert not await place.other.find(order.instance_id)
    assert await place.listed() == []
    with pytest.raises(InstanceGone):
        await place.other.endpoint(order.instance_id, order.token)
    assert (await place.other.terminate(order.instance_id)).gone


async def test_what_somebody_else_ended_is_gone_and_ending_it_is_a_success(place: Place) -> None:
    order = await place.made()
    await eventually(lambda: place.answers(order), "its agents")
    place.end_from_outside(order.instance_id)
    with pytest.raises(InstanceGone):
        await place.backend.endpoint(order.instance_id, order.token)
    assert not await place.backend.find(order.instance_id)
    await place.ended(order.instance_id)


async def test_ending_one_leaves_the_others(place: Place) -> None:
    first, second = await place.made(), await place.made()
    for order in (first, second):
        await eventually(lambda order=order: place.answers(order), "its agents")  # type: ignore[misc]
    await place.ended(first.instance_id)
    assert await place.answers(second)
    assert await place.listed() == [second.instance_id]
