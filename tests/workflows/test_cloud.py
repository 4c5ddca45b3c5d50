"""Buying instances from a cloud that goes wrong: one machine a purchase, the next offer after each no, all kept."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from perdure.model.statuses import InstanceReason
from tests.support.cloud import Fault, breaks, full, hangs, held, invalid, kind, quota, throttled
from tests.support.simulated import Script
from tests.workflows.conftest import CloudLab


def whys(cloud_instance: Any) -> list[str]:
    return [failure.why for failure in cloud_instance.failures]


async def test_a_task_runs_on_the_cheapest_machine_that_is_bought_for_it(cloud: CloudLab) -> None:
    assert await cloud.end(await cloud.submit("hello")) == "done"
    (machine,) = cloud.provider.alive()
    assert machine.kind == "small"
    assert await cloud.end(await cloud.submit("again")) == "done"
    assert cloud.provider.asked("create") == ["small"], "the idle one was not used again"
    await cloud.at_rest()


@pytest.mark.parametrize("fault", [breaks(done=True), hangs(done=True)], ids=["breaks", "hangs"])
async def test_what_was_made_without_a_word_is_adopted(cloud: CloudLab, fault: Fault) -> None:
    cloud.backend.deadline = 0.5
    cloud.provider.once("create", fault)
    assert await cloud.end(await cloud.submit("lost-answer")) == "done"
    assert [machine.kind for machine in cloud.provider.machines.values()] == ["small"]
    assert (await cloud.instance()).failures == ()
    await cloud.at_rest()


async def test_what_was_not_made_without_a_word_is_asked_for_again_and_made_once(cloud: CloudLab) -> None:
    cloud.time(offer=30.0)
    cloud.provider.once("create", breaks(), breaks())
    assert await cloud.end(await cloud.submit("no-answer")) == "done"
    assert cloud.provider.asked("create") == ["small"] * 3
    assert len(cloud.provider.machines) == 1
    await cloud.at_rest()


async def test_a_no_to_what_was_made_all_the_same_is_not_believed(cloud: CloudLab) -> None:
    cloud.provider.once("create", Fault(400, "invalid", "it failed", done=True))
    assert await cloud.end(await cloud.submit("liar")) == "done"
    assert [machine.kind for machine in cloud.provider.machines.values()] == ["small"]
    await cloud.at_rest()


async def test_any_error_of_an_offer_moves_on_to_the_next_and_is_kept(
    cloud: CloudLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = cloud.backend.create

    async def fails(order: Any) -> None:
        if order.offer.instance_type == "big":
            raise RuntimeError("a leftover file is in the way")
        await create(order)

    monkeypatch.setattr(cloud.backend, "create", fails)
    cloud.provider.always("create", quota(), about="small")
    assert await cloud.end(await cloud.submit("third-time")) == "done"
    instance = await cloud.instance()
    assert instance.offer is not None
    assert instance.offer.instance_type == "huge"
    assert whys(instance) == [
        "the quota of 0 machines is used up",
        "unexpected RuntimeError: a leftover file is in the way",
    ]
    await cloud.at_rest()


async def test_an_offer_that_is_throttled_for_a_while_is_waited_for(cloud: CloudLab) -> None:
    cloud.time(offer=30.0)
    cloud.provider.once("create", throttled(), throttled())
    assert await cloud.end(await cloud.submit("patient")) == "done"
    assert cloud.provider.asked("create") == ["small"] * 3
    await cloud.at_rest()


async def test_an_offer_without_a_clear_answer_is_given_up_for_the_next(cloud: CloudLab) -> None:
    cloud.provider.always("create", throttled(), about="small")
    cloud.provider.always("create", breaks(), about="big")
    assert await cloud.end(await cloud.submit("moves-on")) == "done"
    instance = await cloud.instance()
    assert whys(instance) == ["slow down", "create: something broke"]
    await cloud.at_rest()


async def test_no_offer_left_fails_the_run_which_says_what_was_tried(cloud: CloudLab) -> None:
    cloud.provider.always("create", full(), about="small")
    cloud.provider.always("create", quota(), about="big")
    cloud.provider.always("create", invalid(), about="huge")
    ended = await cloud.end(await cloud.submit("unlucky"))
    assert ended.startswith("failed:")
    assert "cloud north small" in ended
    assert "there is no such machine left; 2 more failed" in ended
    (gone,) = await cloud.until_instances("terminated")
    assert gone.reason is InstanceReason.NO_OFFERS
    kept = ["there is no such machine left", "the quota of 0 machines is used up", "the region is not enabled"]
    assert whys(gone) == kept
    ((tried,),) = await cloud.rows("SELECT tried FROM claims")
    assert [failure["why"] for failure in tried] == kept
    await cloud.at_rest()


async def test_the_cheapest_twenty_five_offers_are_tried_and_no_more(cloud: CloudLab) -> None:
    cloud.backend.catalog = [kind(f"k{n:02}", 1.0 + n) for n in range(30)]
    cloud.provider.always("create", full())
    assert (await cloud.end(await cloud.submit("many"))).startswith("failed:")
    assert cloud.provider.asked("create") == [f"k{n:02}" for n in range(25)]
    (gone,) = await cloud.until_instances("terminated")
    assert len(gone.failures) == 25
    await cloud.at_rest()


async def test_remains_of_a_failed_offer_do_not_hold_the_run_up_and_are_gone_in_the_end(cloud: CloudLab) -> None:
    cloud.provider.hides_new["small"] = 10**6
    cloud.provider.always("create", breaks(done=True), about="small")
    cloud.provider.always("terminate", breaks())
    assert await cloud.end(await cloud.submit("failover")) == "done"
    assert sorted(machine.kind for machine in cloud.provider.alive()) == ["big", "small"]
    remains = next(machine for machine in cloud.provider.alive() if machine.kind == "small")
    remains.unlisted = 0
    await cloud.sweep()
    await cloud.sweep()
    assert len(cloud.provider.alive()) == 2, "the provider has refused"
    cloud.provider.heal()
    assert any("orphan-instance" in words for words in await cloud.sweep())
    assert [machine.kind for machine in cloud.provider.alive()] == ["big"]
    await cloud.at_rest()


async def test_remains_of_a_failed_offer_end_with_the_instance(cloud: CloudLab) -> None:
    cloud.provider.hides_new["small"] = 10**6
    cloud.provider.always("create", breaks(done=True), about="small")
    assert await cloud.end(await cloud.submit("failover")) == "done"
    next(machine for machine in cloud.provider.alive() if machine.kind == "small").unlisted = 0
    await cloud.client.get_workflow_handle("fleet/main/cloud").signal("delete")
    await cloud.until_instances("terminated")
    await cloud.at_rest()


async def test_a_run_is_stopped_while_its_machine_is_being_bought_and_the_machine_is_kept_for_others(
    cloud: CloudLab,
) -> None:
    go_on = asyncio.Event()
    cloud.provider.once("create", held(go_on))
    handle = await cloud.submit("impatient")
    await cloud.until(lambda: bool(cloud.provider.asked("create")))
    await handle.signal("stop")
    assert await cloud.end(handle) == "terminated"
    go_on.set()
    await cloud.until_instances("idle")
    await cloud.at_rest()


async def test_a_fleet_is_deleted_while_a_machine_is_being_bought_and_nothing_is_left(cloud: CloudLab) -> None:
    cloud.time(settle=30.0)
    go_on = asyncio.Event()
    cloud.provider.once("create", held(go_on))
    run = await cloud.submit("doomed")
    await cloud.until(lambda: bool(cloud.provider.asked("create")))
    await run.signal("stop")
    await cloud.end(run)
    fleet = cloud.client.get_workflow_handle("fleet/main/cloud")
    await fleet.signal("delete")
    await cloud.until(lambda: len(cloud.provider.asked("terminate")) >= 2)
    assert (await cloud.instance()).status.value == "terminating", "it was believed too soon"
    go_on.set()
    await cloud.until_instances("terminated")
    assert await fleet.result() == "deleted"
    await cloud.at_rest()


async def test_one_purchase_that_hangs_holds_no_other_run_up(cloud: CloudLab) -> None:
    go_on = asyncio.Event()
    cloud.provider.once("create", held(go_on))
    first = await cloud.submit("hangs")
    await cloud.until(lambda: bool(cloud.provider.asked("create")))
    assert await cloud.end(await cloud.submit("second")) == "done"
    go_on.set()
    assert await cloud.end(first) == "done"
    await cloud.at_rest()


async def test_purchases_at_once_have_numbers_of_their_own_and_leave_no_ghosts(cloud: CloudLab) -> None:
    cloud.hosts.script = lambda *_: Script(seconds=0.5)
    cloud.provider.always("create", full(), about="small")
    runs = await asyncio.gather(*(cloud.submit(f"many-{n}") for n in range(5)))
    assert {await cloud.end(run) for run in runs} == {"done"}
    found = await cloud.instances()
    assert sorted(one.num for one in found) == list(range(len(found)))
    assert all(whys(one) == ["there is no such machine left"] for one in found)
    await cloud.at_rest()


async def test_a_gang_that_gets_only_one_of_its_machines_starts_nothing(cloud: CloudLab) -> None:
    cloud.provider.room = 1
    ended = await cloud.end(await cloud.submit("half", nodes=2))
    assert ended.startswith("failed:")
    assert cloud.hosts.jobs == {}
    await cloud.until_instances("idle", "terminated")
    await cloud.at_rest()


async def test_a_gang_waits_for_its_second_machine_and_uses_the_first_that_was_bought(cloud: CloudLab) -> None:
    cloud.provider.room = 1
    handle = await cloud.submit("whole", nodes=2, retry=True)
    await cloud.until(lambda: "huge" in cloud.provider.asked("create"))
    cloud.provider.room = 2
    assert await cloud.end(handle) == "done"
    assert cloud.hosts.runs() == {(0, 0, 0): 1, (0, 1, 0): 1}
    assert len(cloud.provider.machines) == 2
    await cloud.at_rest()


async def test_spot_is_for_who_asks_for_it_and_nothing_above_the_price_limit_is_asked_for(cloud: CloudLab) -> None:
    cloud.backend.catalog = [kind("cheap", 0.5, spot=True), kind("small", 1.0), kind("big", 2.0)]
    assert await cloud.end(await cloud.submit("spot", spot_policy="spot")) == "done"
    cloud.provider.once("create", full())
    assert (await cloud.end(await cloud.submit("poor", max_price=1.5))).startswith("failed:")
    assert await cloud.end(await cloud.submit("default")) == "done", "the idle spot machine is not for it"
    assert cloud.provider.asked("create") == ["cheap", "small", "small"]
    await cloud.at_rest()
