from __future__ import annotations

import dataclasses
from uuid import UUID

from activities.doctor import Doctor
from activities.world import World
from perdure.backends import ProviderInstance
from perdure.model.api import Check
from perdure.model.errors import ProviderError
from perdure.model.events import ClaimGranted, FleetChanged, InstanceStop
from perdure.model.messages import FleetView, Nothing
from perdure.model.statuses import ClaimStatus
from perdure.store import fleets
from perdure.store.database import Database
from tests.support.invariants import assert_invariants
from tests.support.inventory import Inventory


async def _delete(inventory: Inventory) -> FleetView:
    async with inventory.db.transaction() as tx:
        return await fleets.delete(tx, inventory.project, "local")


async def _statuses(inventory: Inventory) -> list[str]:
    return [row.status for row in await inventory.rows("SELECT status FROM instances ORDER BY num, created_at")]


async def test_fleet_makes_the_instances_it_must_have_once(inventory: Inventory):
    await inventory.fleet(nodes=(2, 4))
    await inventory.fleet(nodes=(2, 4))
    assert await _statuses(inventory) == ["pending", "pending"]


async def test_bigger_fleet_grants_who_waits(inventory: Inventory):
    await inventory.fleet(nodes=(0, 0))
    request, answer = await inventory.claim()
    assert answer.status is ClaimStatus.WAITING
    await inventory.fleet(nodes=(0, 1))
    assert [nudge.workflow_id for nudge in inventory.told] == [request.owner]


async def test_instance_that_a_fleet_must_have_goes_to_who_waits(inventory: Inventory):
    await inventory.fleet(nodes=(1, 1))
    request, answer = await inventory.claim()
    assert answer.status is ClaimStatus.GRANTED and answer.placements[0].fresh
    assert await _statuses(inventory) == ["pending"]
    assert request.claim_id


async def test_idle_instance_is_retired_after_its_time_but_not_below_the_minimum(inventory: Inventory):
    await inventory.fleet(nodes=(1, 2))
    _, answer = await inventory.claim(nodes=2, idle_duration=0.0)
    for place in answer.placements:
        await inventory.ready(place.instance_id)
    held = answer.placements[0].instance_id
    assert (await inventory.retire(held)).status == "busy"
    await inventory.withdraw((await inventory.rows("SELECT id FROM claims"))[0].id)
    await inventory.change("UPDATE instances SET idle_duration = 0, keep_until = NULL")
    for place in answer.placements:
        await inventory.retire(place.instance_id)
    assert sorted(await _statuses(inventory)) == ["idle", "terminating"]


async def test_retirement_says_until_when_it_may_idle(inventory: Inventory):
    await inventory.fleet()
    request, answer = await inventory.claim(idle_duration=120.0)
    await inventory.ready(answer.placements[0].instance_id)
    await inventory.withdraw(request.claim_id)
    view = await inventory.retire(answer.placements[0].instance_id)
    (row,) = await inventory.rows("SELECT idle_since FROM instances")
    assert view.status == "idle" and view.idle_until is not None
    assert (view.idle_until - row.idle_since).total_seconds() == 120


async def test_instance_that_may_not_idle_is_told_when_its_idle_time_begins(inventory: Inventory):
    await inventory.fleet()
    request, answer = await inventory.claim(idle_duration=0.0)
    instance = answer.placements[0].instance_id
    view = await inventory.ready(instance)
    assert view.idle_duration is not None and view.idle_duration > 0, "a busy one does not ask without a pause"
    _, told = await inventory.end(request, instance)
    assert told.workflow_id == f"instance/{instance}" and isinstance(told.news, InstanceStop)
    assert (await inventory.retire(instance)).status == "terminating"


async def test_deleted_fleet_refuses_drains_and_is_gone_with_its_last_instance(inventory: Inventory):
    await inventory.fleet()
    request, answer = await inventory.claim()
    instance = answer.placements[0].instance_id
    await inventory.ready(instance)
    await inventory.start(request, instance)
    assert (await _delete(inventory)).live == 1
    assert await _statuses(inventory) == ["busy"], "what is held is not touched"
    _, refused = await inventory.claim(wait=False)
    assert refused.status is ClaimStatus.REFUSED and "being deleted" in refused.message

    _, stop = await inventory.end(request, instance)
    assert isinstance(stop.news, InstanceStop) and stop.workflow_id == f"instance/{instance}"
    view = await inventory.gone(instance)
    assert [type(nudge.news) for nudge in view.nudges] == [FleetChanged]
    assert (await _delete(inventory)).live == 0
    await inventory.fleet()
    found = await inventory.rows("SELECT status FROM fleets ORDER BY created_at")
    assert [row.status for row in found] == ["terminated", "active"]


async def test_smaller_fleet_lets_go_of_what_is_free(inventory: Inventory):
    await inventory.fleet()
    held = []
    for _ in range(3):
        request, answer = await inventory.claim()
        await inventory.ready(answer.placements[0].instance_id)
        held.append((request, answer.placements[0].instance_id))
    await inventory.end(*held[2])
    await inventory.fleet(nodes=(0, 1))
    assert await _statuses(inventory) == ["busy", "busy", "terminating"]


async def test_parts_of_one_instance_are_held_apart(inventory: Inventory):
    from perdure.model.resources import Requirements, Span

    await inventory.fleet(nodes=(0, 1), blocks=2)
    half = Requirements(cpu=Span(min=1), firm=("cpu",))
    claims = [await inventory.claim(requirements=half) for _ in range(3)]
    assert [answer.status for _, answer in claims] == [
        ClaimStatus.GRANTED,
        ClaimStatus.GRANTED,
        ClaimStatus.WAITING,
    ]
    assert [row.block for row in await inventory.rows("SELECT block FROM holdings ORDER BY 1")] == [0, 1]
    (granted,) = await inventory.withdraw(claims[0][0].claim_id)
    assert isinstance(granted.news, ClaimGranted) and granted.news.claim_id == claims[2][0].claim_id
    await assert_invariants(inventory.db, inventory.offers)


@dataclasses.dataclass
class _Backend:
    """A provider that says what it is told to say."""

    name: str = "local"
    has: tuple[ProviderInstance, ...] = ()
    silent: bool = False

    def offers(self, requirements: object) -> list[object]:
        return []

    async def list(self) -> list[ProviderInstance]:
        if self.silent:
            raise ProviderError("no answer")
        return list(self.has)


async def _check_up(db: Database, backend: _Backend) -> dict[str, Check]:
    world = World(
        database=db,
        blobs=None,  # type: ignore[arg-type]
        backends={"local": backend},  # type: ignore[dict-item]
        agents=None,  # type: ignore[arg-type]
        temporal=None,  # type: ignore[arg-type]
        installation=UUID(int=1),
        epoch=1,
        private_key=b"\0" * 32,
        worker="test",
        incarnation=UUID(int=2),
    )
    found = await Doctor(world).doctor(Nothing())
    return {check.invariant: check for check in found.checks if not check.ok}


async def test_doctor_finds_nothing_wrong_with_an_empty_installation(database: Database):
    assert await _check_up(database, _Backend()) == {}


async def test_doctor_names_the_stranger_at_the_provider_and_the_broken_row(inventory: Inventory):
    ours = ProviderInstance(UUID(int=7), UUID(int=1), 1, 60.0)
    others = ProviderInstance(UUID(int=8), UUID(int=9), 1, 60.0)
    await inventory.fleet()
    request, _ = await inventory.claim()
    await inventory.change("DELETE FROM holdings")
    await inventory.change("DELETE FROM instances")
    await inventory.change("UPDATE runs SET ended_at = now(), status = 'done'")
    found = await _check_up(inventory.db, _Backend(has=(ours, others)))
    assert found["what a provider has of ours has a living row"].findings == (
        f"local has {UUID(int=7)}, which no living row knows",
    )
    assert found["a claim holds blocks if, and only if, it is granted"].findings == (
        f"claim {request.claim_id} is granted and holds 0",
    )


async def test_doctor_says_which_backend_is_silent(database: Database):
    found = await _check_up(database, _Backend(silent=True))
    assert found["every backend answers"].findings == ("backend local does not answer: no answer",)
