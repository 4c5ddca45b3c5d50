from __future__ import annotations

from perdure.model.api import RunQuery
from perdure.model.events import ClaimFailed, ClaimGranted, JobEnded
from perdure.model.resources import Requirements, Span
from perdure.model.statuses import ClaimStatus, JobReason, JobStatus
from perdure.store import reads
from tests.support.inventory import GPU, HERE, Inventory


async def test_claim_makes_a_placeholder_then_hears_that_it_is_ready(inventory: Inventory):
    await inventory.fleet()
    request, answer = await inventory.claim()
    assert answer.status is ClaimStatus.GRANTED
    (place,) = answer.placements
    assert place.fresh and place.instance_name == "local-0" and place.address is None

    view = await inventory.ready(place.instance_id)
    (nudge,) = view.nudges
    assert nudge.workflow_id == request.owner
    assert isinstance(nudge.news, ClaimGranted) and nudge.news.ready
    assert nudge.news.placements[0].address == "127.0.0.1"


async def test_claim_asked_again_gives_the_same_answer(inventory: Inventory):
    await inventory.fleet()
    request, first = await inventory.claim(nodes=2)
    again = await inventory.again(request)
    assert again.placements == first.placements and again.status is first.status
    assert len(await inventory.rows("SELECT * FROM instances")) == 2


async def test_end_releases_and_grants_the_next_in_one_step(inventory: Inventory):
    await inventory.fleet(nodes=(0, 1))
    request, answer = await inventory.claim()
    instance = answer.placements[0].instance_id
    await inventory.ready(instance)
    await inventory.start(request, instance)
    waiting, asked = await inventory.claim()
    assert asked.status is ClaimStatus.WAITING and "nodes.max" in asked.message

    ended, granted = await inventory.end(request, instance)
    assert isinstance(ended.news, JobEnded) and ended.workflow_id == request.owner
    assert isinstance(granted.news, ClaimGranted) and granted.workflow_id == waiting.owner
    assert granted.news.ready and granted.news.placements[0].instance_id == instance


async def test_end_is_decided_once(inventory: Inventory):
    await inventory.fleet()
    request, answer = await inventory.claim()
    instance = answer.placements[0].instance_id
    await inventory.ready(instance)
    await inventory.start(request, instance)
    first = await inventory.end(request, instance)
    other, _ = await inventory.claim()

    second = await inventory.end(
        request, instance, status=JobStatus.FAILED, reason=JobReason.EXECUTOR_ERROR, exit_status=1
    )
    assert second[0] == first[0]
    assert [nudge.workflow_id for nudge in second[1:]] == [other.owner], "who was granted is told again"
    held = await inventory.rows("SELECT claim_id FROM holdings")
    assert [row.claim_id for row in held] == [other.claim_id]


async def test_idle_instance_is_reused_before_one_is_made(inventory: Inventory):
    await inventory.fleet()
    request, answer = await inventory.claim()
    instance = answer.placements[0].instance_id
    await inventory.ready(instance)
    await inventory.end(request, instance)
    _, second = await inventory.claim()
    assert second.status is ClaimStatus.READY
    assert second.placements[0].instance_id == instance and not second.placements[0].fresh


async def test_gang_gets_all_or_nothing(inventory: Inventory):
    await inventory.fleet(nodes=(0, 3))
    one, _ = await inventory.claim()
    gang, answer = await inventory.claim(nodes=3)
    assert answer.status is ClaimStatus.WAITING
    assert not await inventory.rows("SELECT * FROM holdings WHERE claim_id = :id", id=gang.claim_id)
    nudges = await inventory.withdraw(one.claim_id)
    granted = [nudge.news for nudge in nudges if isinstance(nudge.news, ClaimGranted)]
    assert [len(news.placements) for news in granted] == [3]
    assert [place.node for place in granted[0].placements] == [0, 1, 2]


async def test_several_nodes_need_a_cluster(inventory: Inventory):
    await inventory.fleet(placement="any")
    _, answer = await inventory.claim(nodes=2, wait=False)
    assert answer.status is ClaimStatus.REFUSED
    assert "placement: cluster" in answer.message


async def test_refusal_by_a_full_fleet_says_how_to_wait_for_a_place(inventory: Inventory):
    await inventory.fleet(nodes=(0, 1))
    await inventory.claim()
    _, refused = await inventory.claim(wait=False)
    assert refused.status is ClaimStatus.REFUSED
    assert refused.message.endswith("; `retry: true` makes a run wait for a place")
    _, after_waiting = await inventory.claim(wait=False, keep=15.0)
    assert "retry" not in after_waiting.message
    _, too_many = await inventory.claim(wait=False, nodes=2)
    assert "retry" not in too_many.message


async def test_refusal_says_every_fleet_and_offer_and_why(inventory: Inventory):
    inventory.catalog = [HERE, GPU]
    await inventory.fleet()
    wants = Requirements(cpu=Span(min=64), firm=("cpu",))
    request, answer = await inventory.claim(wait=False, requirements=wants)
    assert answer.status is ClaimStatus.REFUSED
    assert [it.why for it in answer.tried] == ["has 2 CPUs, wanted 64..", "has 16 CPUs, wanted 64.."]
    assert await inventory.again(request) == answer.but(again=True)
    assert answer.message == (
        f"no capacity for an instance: local has 2 CPUs, wanted 64..; 1 more in `perdure run get {request.run_id}`"
    )
    async with inventory.db.transaction() as tx:
        (shown,) = await reads.list_runs(tx, RunQuery(project="main", run_id=request.run_id))
    assert shown.failures == answer.tried


async def test_no_fleet_says_what_to_do(inventory: Inventory):
    _, answer = await inventory.claim(wait=False)
    assert answer.status is ClaimStatus.REFUSED
    assert "has no fleet" in answer.message and "type: fleet" in answer.message


async def test_priority_goes_first_then_age(inventory: Inventory):
    await inventory.fleet(nodes=(0, 1))
    holder, answer = await inventory.claim()
    instance = answer.placements[0].instance_id
    await inventory.ready(instance)
    waiting = [(await inventory.claim(priority=priority))[0] for priority in (0, 5, 5, 1)]
    order = []
    for _ in range(4):
        (_, granted) = await inventory.end(holder, instance)
        order.append(granted.news.claim_id)
        holder = next(request for request in waiting if request.claim_id == order[-1])
    assert order == [waiting[at].claim_id for at in (1, 2, 3, 0)]


async def test_new_claim_does_not_jump_an_equal_that_waits(inventory: Inventory):
    await inventory.fleet(nodes=(0, 0))
    first, _ = await inventory.claim()
    await inventory.change("UPDATE fleets SET nodes_max = 1")
    _, answer = await inventory.claim()
    assert answer.status is ClaimStatus.WAITING
    assert [nudge.workflow_id for nudge in answer.nudges] == [first.owner]


async def test_gang_that_waited_longer_than_its_patience_reserves_what_comes_free(inventory: Inventory):
    await inventory.fleet(nodes=(0, 2))
    held = []
    for _ in range(2):
        request, answer = await inventory.claim()
        held.append((request, answer.placements[0].instance_id))
        await inventory.ready(held[-1][1])
    gang, _ = await inventory.claim(nodes=2, queue_patience=60)
    single, _ = await inventory.claim()

    assert len(await inventory.end(*held[0])) == 2, "until then, small claims pass"
    await inventory.claim()
    await inventory.change(
        "UPDATE claims SET queued_at = now() - interval '2 minutes' WHERE id = :id", id=gang.claim_id
    )
    assert len(await inventory.end(single, held[0][1])) == 1, "what came free is kept for the gang"
    _, granted = await inventory.end(*held[1])
    assert granted.news.claim_id == gang.claim_id and len(granted.news.placements) == 2


async def test_patience_of_a_gang_that_can_never_fit_keeps_nothing_back(inventory: Inventory):
    await inventory.fleet(nodes=(0, 2))
    gang, _ = await inventory.claim(nodes=3)
    await inventory.change(
        "UPDATE claims SET queued_at = now() - interval '1 day' WHERE id = :id", id=gang.claim_id
    )
    _, answer = await inventory.claim()
    assert answer.status is ClaimStatus.GRANTED


async def test_lost_instance_fails_the_gang_and_keeps_its_other_machines(inventory: Inventory):
    await inventory.fleet()
    gang, answer = await inventory.claim(nodes=2, idle_duration=0.0, keep=60.0)
    first, second = (place.instance_id for place in answer.placements)
    await inventory.ready(first)
    view = await inventory.lose(second)
    failed = [nudge.news for nudge in view.nudges if isinstance(nudge.news, ClaimFailed)]
    assert [news.claim_id for news in failed] == [gang.claim_id]
    assert not await inventory.rows("SELECT * FROM holdings")
    assert (await inventory.retire(first)).status == "idle", "kept while the claim comes back"
    await inventory.change("UPDATE instances SET keep_until = now() - interval '1 second'")
    assert (await inventory.retire(first)).status == "terminating"


async def test_losing_one_machine_of_a_running_gang_does_not_free_the_others(inventory: Inventory):
    await inventory.fleet()
    gang, answer = await inventory.claim(nodes=2)
    first, second = (place.instance_id for place in answer.placements)
    for instance in (first, second):
        await inventory.ready(instance)
    await inventory.start(gang, first, 0)
    await inventory.lose(second)
    await inventory.withdraw(gang.claim_id)
    assert [row.instance_id for row in await inventory.rows("SELECT instance_id FROM holdings")] == [first]
    await inventory.end(gang, first, 0)
    assert not await inventory.rows("SELECT * FROM holdings")
    (row,) = await inventory.rows("SELECT status FROM claims WHERE id = :id", id=gang.claim_id)
    assert row.status == "released"


async def test_step_cut_off_after_its_commit_tells_again_whom_it_granted(inventory: Inventory):
    await inventory.fleet(nodes=(0, 1))
    request, answer = await inventory.claim()
    instance = answer.placements[0].instance_id
    await inventory.ready(instance)
    waiting, _ = await inventory.claim()
    _, granted = await inventory.end(request, instance)
    _, again = await inventory.end(request, instance)
    assert again == granted and granted.workflow_id == waiting.owner
    await inventory.start(waiting, instance)
    assert len(await inventory.end(request, instance)) == 1, "who has acted is not told again"


async def test_quarantined_block_is_nobodys_until_lifted(inventory: Inventory):
    from perdure.store import ends

    await inventory.fleet(nodes=(0, 1))
    request, answer = await inventory.claim()
    instance = answer.placements[0].instance_id
    await inventory.ready(instance)
    key = await inventory.start(request, instance)
    waiting, _ = await inventory.claim()
    assert len(await inventory.end(request, instance, quarantine=True)) == 1
    assert (await inventory.again(waiting)).status is ClaimStatus.WAITING
    async with inventory.db.transaction() as tx:
        (granted,) = await ends.lift_quarantine(tx, key.job_id, inventory.offers)
    assert granted.news.claim_id == waiting.claim_id


async def test_withdrawn_placeholder_that_nobody_wants_is_let_go(inventory: Inventory):
    await inventory.fleet()
    request, answer = await inventory.claim()
    (nudge,) = await inventory.withdraw(request.claim_id)
    assert nudge.workflow_id == f"instance/{answer.placements[0].instance_id}"
    (row,) = await inventory.rows("SELECT status FROM instances")
    assert row.status == "terminating"
    assert await inventory.withdraw(request.claim_id) == ()
    assert (await inventory.again(request)).status is ClaimStatus.RELEASED


async def test_number_is_free_again_when_the_provider_says_gone(inventory: Inventory):
    await inventory.fleet(nodes=(0, 1))
    request, answer = await inventory.claim()
    waiting, _ = await inventory.claim()
    instance = answer.placements[0].instance_id
    view = await inventory.lose(instance)
    assert [nudge.workflow_id for nudge in view.nudges] == [request.owner], "full until the provider says gone"
    view = await inventory.gone(instance)
    (granted,) = view.nudges
    assert granted.news.claim_id == waiting.claim_id
    assert granted.news.placements[0].instance_name == "local-0"


async def test_claim_that_sleeps_takes_nothing_until_its_time(inventory: Inventory):
    from datetime import timedelta

    from tests.support.inventory import now

    await inventory.fleet()
    request, answer = await inventory.claim(not_before=now() + timedelta(hours=1))
    assert answer.status is ClaimStatus.WAITING
    await inventory.change("UPDATE claims SET not_before = now()")
    assert (await inventory.again(request)).status is ClaimStatus.GRANTED
