"""Buying an instance: one purchase, whatever the provider answers; reaching that very one; giving it back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

import pytest

from activities.instances import Instances
from perdure.backends import Endpoint, Order, ProviderInstance
from perdure.model.errors import CapacityError, OutcomeUnknown, ProviderError, ProviderThrottled
from perdure.model.messages import Created, InstanceRef, Termination
from perdure.model.resources import Offer, Requirements, Resources
from perdure.store import instances
from tests.activities.bench import Bench

SMALL, BIG = (
    Offer(
        backend="cloud",
        region="here",
        instance_type=name,
        resources=Resources(cpus=2, memory_mib=8192, disk_mib=102400),
    )
    for name in ("small", "big")
)


@dataclass
class Cloud:
    """A provider that does as it is told: ``answers`` are what it does with each call, in order."""

    name: str = "cloud"
    answers: list[Callable[[], None]] = field(default_factory=list)
    orders: list[Order] = field(default_factory=list)
    has: set[UUID] = field(default_factory=set)
    refuses_to_end: bool = False

    def offers(self, requirements: Requirements) -> list[Offer]:
        return [SMALL, BIG]

    async def create(self, order: Order) -> None:
        self.orders.append(order)
        if self.answers:
            self.answers.pop(0)()
        self.has.add(order.instance_id)

    async def find(self, instance_id: UUID) -> bool:
        return instance_id in self.has

    async def endpoint(self, instance_id: UUID, token: str) -> Endpoint:
        return Endpoint(instance_id, "/nowhere/shim.sock", token)

    async def address(self, instance_id: UUID) -> str | None:
        return "10.0.0.1" if instance_id in self.has else None

    async def terminate(self, instance_id: UUID) -> Termination:
        if self.refuses_to_end:
            raise ProviderError("not today")
        self.has.discard(instance_id)
        return Termination(gone=True)

    async def list(self) -> list[ProviderInstance]:
        return []


@pytest.fixture
def cloud(bench: Bench) -> Cloud:
    cloud = Cloud()
    bench.world.backends = {"cloud": cloud}
    return cloud


def no(error: Exception) -> Callable[[], None]:
    def answer() -> None:
        raise error

    return answer


async def create(bench: Bench, instance: UUID) -> Created:
    return await bench.call(Instances(bench.world).create_instance, InstanceRef(instance_id=instance))


async def test_the_next_offer_is_tried_and_each_failure_kept(bench: Bench, cloud: Cloud) -> None:
    cloud.answers = [no(CapacityError("none left"))]
    instance = await bench.pending_instance()
    created = await create(bench, instance)
    assert created.offer == BIG
    assert [failure.why for failure in created.tried] == ["none left"]
    record = await _record(bench, instance)
    assert record.offer == BIG
    assert [failure.why for failure in record.failures] == ["none left"]


async def test_no_offer_left_says_what_was_tried(bench: Bench, cloud: Cloud) -> None:
    cloud.answers = [no(CapacityError("none left")), no(ProviderError("quota"))]
    created = await create(bench, await bench.pending_instance())
    assert created.offer is None
    assert [failure.why for failure in created.tried] == ["none left", "quota"]


async def test_the_order_carries_the_rows_token_and_identity(bench: Bench, cloud: Cloud) -> None:
    instance = await bench.pending_instance()
    await create(bench, instance)
    (order,) = cloud.orders
    record = await _record(bench, instance)
    assert (order.instance_id, order.token, order.offer) == (instance, record.token, SMALL)
    assert (order.installation, order.epoch) == (bench.world.installation, bench.world.epoch)


async def test_creating_again_adopts_what_is_there(bench: Bench, cloud: Cloud) -> None:
    instance = await bench.pending_instance()
    first, second = await create(bench, instance), await create(bench, instance)
    assert first.offer == second.offer == SMALL
    assert len(cloud.orders) == 1


async def test_a_call_whose_outcome_is_unknown_is_looked_up(bench: Bench, cloud: Cloud) -> None:
    instance = await bench.pending_instance()

    def accepted_but_cut_off() -> None:
        cloud.has.add(instance)
        raise OutcomeUnknown("timed out")

    cloud.answers = [accepted_but_cut_off]
    assert (await create(bench, instance)).offer == SMALL
    assert len(cloud.orders) == 1


async def test_no_other_offer_is_tried_while_an_outcome_is_unknown(bench: Bench, cloud: Cloud) -> None:
    bench.world.timing = bench.world.timing.but(activity_retry=0.01)
    cloud.answers = [no(OutcomeUnknown("timed out"))]
    created = await create(bench, await bench.pending_instance())
    assert (created.offer, created.tried) == (SMALL, ())
    assert [order.offer for order in cloud.orders] == [SMALL, SMALL]


async def test_each_offer_is_a_purchase_of_its_own(bench: Bench, cloud: Cloud) -> None:
    cloud.answers = [no(CapacityError("none left"))]
    instance = await bench.pending_instance()
    await create(bench, instance)
    first, second = (order.instance_id for order in cloud.orders)
    assert first == instance != second
    assert (await _record(bench, instance)).purchase == second
    await create(bench, instance)
    assert len(cloud.orders) == 2, "it was not adopted"
    assert (await bench.call(Instances(bench.world).terminate_instance, InstanceRef(instance_id=instance))).gone
    assert cloud.has == set()


async def test_a_worker_that_dies_after_the_call_adopts_what_it_has_made(bench: Bench, cloud: Cloud) -> None:
    class Killed(BaseException):
        """Nothing of ours catches it."""

    instance = await bench.pending_instance()

    def dies() -> None:
        cloud.has.add(instance)
        raise Killed

    cloud.answers = [dies]
    with pytest.raises(Killed):
        await create(bench, instance)
    assert (await create(bench, instance)).offer == SMALL
    assert len(cloud.orders) == 1


async def test_a_throttled_provider_is_asked_again(bench: Bench, cloud: Cloud) -> None:
    bench.world.timing = bench.world.timing.but(activity_retry=0.01)
    cloud.answers = [no(ProviderThrottled("slow down")), no(ProviderThrottled("slow down"))]
    assert (await create(bench, await bench.pending_instance())).offer == SMALL
    assert [order.offer for order in cloud.orders] == [SMALL] * 3


async def test_an_instance_that_is_no_longer_wanted_is_not_made(bench: Bench, cloud: Cloud) -> None:
    instance = await bench.pending_instance()
    await bench.execute("UPDATE instances SET status = 'terminating' WHERE id = :id", id=instance)
    assert (await create(bench, instance)).offer is None
    assert cloud.orders == []


async def test_an_instance_whose_shim_never_answers_is_not_reached(bench: Bench, cloud: Cloud) -> None:
    bench.world.timing = bench.world.timing.but(provisioning=0.4)
    instance = await bench.pending_instance()
    await create(bench, instance)
    reached = await bench.call(Instances(bench.world).reach_instance, InstanceRef(instance_id=instance))
    assert not reached.reached
    assert "could not be reached" in reached.message


async def test_a_shim_that_is_another_instance_is_not_taken_for_it(bench: Bench) -> None:
    instance, other = await bench.instance(), await bench.pending_instance()
    bench.world.timing = bench.world.timing.but(provisioning=0.4)
    await bench.execute("UPDATE instances SET backend = 'local' WHERE id = :id", id=other)
    local = bench.world.backends["local"]
    endpoint = await bench.endpoint(instance)

    class Misled:
        name = "local"

        def __getattr__(self, name: str) -> Any:
            return getattr(local, name)

        async def address(self, instance_id: UUID) -> str:
            return "127.0.0.1"

        async def endpoint(self, instance_id: UUID, token: str) -> Endpoint:
            return replace(endpoint, instance_id=instance_id)

    bench.world.backends = {"local": Misled()}  # type: ignore[dict-item]
    reached = await bench.call(Instances(bench.world).reach_instance, InstanceRef(instance_id=other))
    assert not reached.reached
    bench.world.backends = {"local": local}


async def test_what_nobody_asked_for_is_gone(bench: Bench, cloud: Cloud) -> None:
    ref = InstanceRef(instance_id=await bench.pending_instance())
    assert (await bench.call(Instances(bench.world).terminate_instance, ref)).gone


async def test_gone_is_only_what_the_provider_says(bench: Bench, cloud: Cloud) -> None:
    instance = await bench.pending_instance()
    await create(bench, instance)
    cloud.refuses_to_end = True
    answer = await bench.call(Instances(bench.world).terminate_instance, InstanceRef(instance_id=instance))
    assert (answer.gone, answer.message) == (False, "not today")
    cloud.refuses_to_end = False
    assert (await bench.call(Instances(bench.world).terminate_instance, InstanceRef(instance_id=instance))).gone
    assert cloud.has == set()


async def _record(bench: Bench, instance: UUID) -> instances.InstanceRecord:
    async with bench.world.database.transaction() as tx:
        return await instances.load(tx, instance)
