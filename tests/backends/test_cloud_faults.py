"""The fake cloud goes wrong as it is told, and its backend says so in the one tree of errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import pytest

from perdure.backends import Order
from perdure.model.errors import (
    AgentUnreachable,
    CapacityError,
    InstanceGone,
    OutcomeUnknown,
    PerdureError,
    ProviderError,
    ProviderThrottled,
)
from tests.support.cloud import (
    CloudBackend,
    Fault,
    Provider,
    breaks,
    full,
    hangs,
    held,
    invalid,
    kind,
    quota,
    served,
    throttled,
)
from tests.support.waiting import eventually

SMALL = kind("small", 1.0)


@pytest.fixture
def provider() -> Provider:
    return Provider()


@pytest.fixture
async def cloud(provider: Provider) -> AsyncIterator[CloudBackend]:
    async with served(provider) as url:
        backend = CloudBackend(url, [SMALL], deadline=0.3, settles=0.0)
        yield backend
        await backend.close()


def order() -> Order:
    return Order(uuid4(), "fleet-0", UUID(int=1), 1, "secret", SMALL)


async def _asked(provider: Provider) -> bool:
    return bool(provider.asked("create"))


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        (full(), CapacityError),
        (quota(), ProviderError),
        (invalid(), ProviderError),
        (throttled(), ProviderThrottled),
        (breaks(), OutcomeUnknown),
        (hangs(), OutcomeUnknown),
    ],
    ids=["full", "quota", "invalid", "throttled", "breaks", "hangs"],
)
async def test_each_refusal_has_its_error_and_makes_nothing(
    cloud: CloudBackend, provider: Provider, fault: Fault, error: type[PerdureError]
) -> None:
    provider.once("create", fault)
    with pytest.raises(error) as caught:
        await cloud.create(order())
    assert type(caught.value) is error
    assert provider.alive() == []
    await cloud.create(order())
    assert len(provider.alive()) == 1


@pytest.mark.parametrize("fault", [breaks(done=True), hangs(done=True)], ids=["breaks", "hangs"])
async def test_an_unknown_outcome_may_have_made_it(cloud: CloudBackend, provider: Provider, fault: Fault) -> None:
    provider.once("create", fault)
    wanted = order()
    with pytest.raises(OutcomeUnknown):
        await cloud.create(wanted)
    assert await cloud.find(wanted.instance_id)


async def test_a_call_that_is_held_goes_on_when_it_may(cloud: CloudBackend, provider: Provider) -> None:
    go_on = asyncio.Event()
    provider.once("create", held(go_on))
    call = asyncio.create_task(cloud.create(order()))
    await eventually(lambda: _asked(provider))
    assert provider.alive() == []
    go_on.set()
    await call
    assert len(provider.alive()) == 1


async def test_a_machine_that_is_not_listed_for_long_is_gone(cloud: CloudBackend, provider: Provider) -> None:
    with pytest.raises(InstanceGone):
        await cloud.endpoint(uuid4(), "secret")


async def test_a_machine_that_is_not_listed_yet_is_only_out_of_reach(provider: Provider) -> None:
    provider.hides_new["small"] = 2
    wanted = order()
    async with served(provider) as url:
        cloud = CloudBackend(url, [SMALL])
        await cloud.create(wanted)
        for _ in range(2):
            with pytest.raises(AgentUnreachable) as caught:
                await cloud.endpoint(wanted.instance_id, "secret")
            assert not isinstance(caught.value, InstanceGone)
        assert (await cloud.endpoint(wanted.instance_id, "secret")).socket == "10.0.0.1"
        await cloud.close()


async def test_what_is_not_listed_ends_without_being_known(cloud: CloudBackend, provider: Provider) -> None:
    provider.hides_new["small"] = 1
    wanted = order()
    await cloud.create(wanted)
    first, second = [await cloud.terminate(wanted.instance_id) for _ in range(2)]
    assert (first.gone, first.known) == (True, False)
    assert (second.gone, second.known) == (True, True)
    assert provider.alive() == []


async def test_the_address_of_a_machine_that_is_gone_is_given_to_the_next(
    cloud: CloudBackend, provider: Provider
) -> None:
    first, second = order(), order()
    await cloud.create(first)
    before = await cloud.address(first.instance_id)
    provider.delete(first.instance_id)
    await cloud.create(second)
    assert await cloud.address(second.instance_id) == before


async def test_a_token_that_has_bought_a_machine_buys_no_other(cloud: CloudBackend, provider: Provider) -> None:
    wanted = order()
    await cloud.create(wanted)
    provider.delete(wanted.instance_id)
    with pytest.raises(ProviderError, match="was ended"):
        await cloud.create(wanted)
    assert provider.alive() == []
