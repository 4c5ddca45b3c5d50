"""Every change of a status is an event of the transaction that makes it, whatever statement makes it."""

from __future__ import annotations

from uuid import UUID

import pytest

from perdure.model.api import EventQuery, EventRow
from perdure.model.ids import OwnName
from perdure.model.messages import Finding, RunRecord
from perdure.model.resources import OfferFailure
from perdure.model.statuses import JobReason, JobStatus, RunReason, RunStatus
from perdure.store import events, fleets, instances, retention, runs, secrets
from perdure.store.database import acting
from perdure.store.secrets import Box
from tests.support.inventory import Inventory, now


async def listed(inventory: Inventory, **query: object) -> list[EventRow]:
    async with inventory.db.transaction() as tx:
        return await events.listed(tx, EventQuery.model_validate({"project": inventory.project, **query}))


def told(rows: list[EventRow]) -> list[str]:
    return [f"[{row.actor}] {row.targets[0].kind} {row.targets[0].name} {row.message}" for row in rows]


async def a_life(inventory: Inventory) -> tuple[UUID, UUID]:
    """Of a run of one node that fails, on an instance made for it."""
    await inventory.fleet()
    run_id = await inventory.run("train")
    request, answer = await inventory.claim(run_id)
    instance_id = answer.placements[0].instance_id
    await inventory.ready(instance_id)
    await inventory.start(request, instance_id)
    failed = {"status": JobStatus.FAILED, "reason": JobReason.CONTAINER_EXITED_WITH_ERROR, "exit_status": 3}
    await inventory.end(request, instance_id, **failed)
    await record(inventory, run_id, RunStatus.FAILED, RunReason.JOB_FAILED, "node 0 exited with status 3")
    return run_id, instance_id


async def record(
    inventory: Inventory, run_id: UUID, status: RunStatus, reason: RunReason | None = None, message: str = ""
) -> None:
    line = RunRecord(
        run_id=run_id, status=status, reason=reason, status_message=message, at=now(), final=status.final
    )
    async with inventory.db.transaction() as tx:
        await runs.record(tx, line)


async def test_a_life_is_told_in_order(inventory: Inventory):
    await a_life(inventory)
    assert told(await listed(inventory)) == [
        "[workflow] fleet local made",
        "[user] run train submitted",
        "[workflow] instance local-0 wanted",
        "[workflow] claim train is granted, and waits for instances to be made: local-0",
        "[workflow] instance local-0 busy",
        "[workflow] claim train is ready",
        "[workflow] job train-0-0 running",
        "[agent] job train-0-0 failed: exited with status 3",
        "[workflow] instance local-0 idle",
        "[workflow] claim train is given back",
        "[workflow] run train failed: node 0 exited with status 3",
    ]


async def test_an_event_names_what_it_is_about_and_what_that_is_part_of(inventory: Inventory):
    run_id, instance_id = await a_life(inventory)
    ended = next(row for row in await listed(inventory) if row.status == "failed")
    assert [(it.kind, it.name) for it in ended.targets] == [
        ("job", "train-0-0"),
        ("run", "train"),
        ("instance", "local-0"),
    ]
    assert [it.id for it in ended.targets[1:]] == [run_id, instance_id]
    assert (ended.before, ended.reason) == ("running", "container_exited_with_error")
    assert ended.data == {"replica": 0, "node": 0, "submission": 0, "exit_status": 3}


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        ({"kind": "run", "name": "train"}, {"run"}),
        ({"kind": "run", "name": "train", "within": True}, {"run", "job", "claim"}),
        ({"kind": "fleet", "name": "local"}, {"fleet"}),
        ({"kind": "fleet", "name": "local", "within": True}, {"fleet", "instance"}),
        ({"kind": "instance", "name": "local-0"}, {"instance", "job"}),
        ({"kind": "secret", "name": "key"}, {"secret"}),
        ({"kind": "run", "name": "other"}, set()),
    ],
)
async def test_events_of_one_thing_are_found_by_its_name(
    inventory: Inventory, query: dict[str, object], kinds: set[str]
):
    await a_life(inventory)
    async with inventory.db.transaction() as tx:
        await secrets.put(tx, "main", "key", Box(b"box", "k"), "ann")
    assert {row.targets[0].kind for row in await listed(inventory, **query)} == kinds


async def test_the_latest_come_last_and_older_ones_are_left_out(inventory: Inventory):
    await a_life(inventory)
    everything = await listed(inventory)
    assert await listed(inventory, limit=2) == everything[-2:]
    assert await listed(inventory, since=everything[5].at) == everything[5:]
    assert await listed(inventory, project="another") == []


async def test_what_is_undone_leaves_no_event(inventory: Inventory):
    await inventory.fleet()
    with pytest.raises(RuntimeError):
        async with inventory.db.transaction() as tx:
            await fleets.delete(tx, "main", "local")
            raise RuntimeError
    assert told(await listed(inventory)) == ["[workflow] fleet local made"]


async def test_a_repeated_step_is_one_event(inventory: Inventory):
    await inventory.fleet()
    run_id = await inventory.run("train")
    request, answer = await inventory.claim(run_id)
    await inventory.again(request)
    for _ in range(2):
        await inventory.ready(answer.placements[0].instance_id)
        await inventory.start(request, answer.placements[0].instance_id)
        await record(inventory, run_id, RunStatus.RUNNING)
    moved = [(row.targets[0].kind, row.status) for row in await listed(inventory)]
    assert len(moved) == len(set(moved)) == 8


async def test_a_claim_that_waits_says_what_for_and_one_that_is_granted_does_not(inventory: Inventory):
    await inventory.fleet(nodes=(0, 1))
    await inventory.claim(await inventory.run("first"))
    request, _ = await inventory.claim(await inventory.run("second"))
    await inventory.withdraw(request.claim_id)
    claims = [row for row in await listed(inventory) if row.targets[0].kind == "claim"]
    assert [row.targets[0].name for row in claims] == ["first", "second", "second"]
    assert claims[1].message.startswith("waits for capacity: no capacity for an instance: ")
    assert claims[2].message == "leaves the queue"


async def test_each_offer_that_did_not_do_is_an_event(inventory: Inventory):
    await inventory.fleet()
    _, answer = await inventory.claim()
    instance_id = answer.placements[0].instance_id
    for why in ("no capacity", "quota exceeded", "quota exceeded"):
        async with inventory.db.transaction() as tx:
            await instances.add_failure(tx, instance_id, OfferFailure(offer="p5 in north", why=why))
    await inventory.lose(instance_id)
    await inventory.gone(instance_id)
    told = [row.message for row in await listed(inventory, kind="instance", name="local-0")]
    assert told == [
        "wanted",
        "p5 in north did not do: no capacity",
        "p5 in north did not do: quota exceeded",
        "terminating: nothing to be had",
        "terminated: nothing to be had",
    ]


async def test_who_acts_is_named(inventory: Inventory):
    with acting("sweep"):
        await inventory.run("train")
    async with inventory.db.transaction() as tx:
        await secrets.put(tx, "main", "key", Box(b"box", "k"), "ann")
    with acting("user bob"):
        async with inventory.db.transaction() as tx:
            await secrets.delete(tx, "main", "key")
    run_id = await inventory.run("other")
    await record(inventory, run_id, RunStatus.TERMINATED, RunReason.STOPPED_BY_USER)
    assert told(await listed(inventory)) == [
        "[sweep] run train submitted",
        "[user ann] secret key set",
        "[user bob] secret key deleted",
        "[user] run other submitted",
        "[user] run other terminated: stopped by user",
    ]


async def test_a_finding_of_the_sweep_is_an_event_where_it_was_found(inventory: Inventory):
    run_id, instance_id = await a_life(inventory)
    stranger = UUID(int=7)
    async with inventory.db.transaction() as tx:
        for subject in (run_id, instance_id, stranger):
            await events.found(tx, Finding(kind="untold", subject=str(subject), message="nobody was told"))
    found = [row for row in await listed(inventory) if row.actor == "sweep"]
    assert [(row.targets[0].name, row.reason, row.message) for row in found] == [
        ("train", "untold", "nobody was told"),
        ("local-0", "untold", "nobody was told"),
        ("", "untold", "nobody was told"),
    ]
    assert await listed(inventory, kind="run", name="train", within=True, limit=1) == found[:1]


async def test_a_refused_configuration_is_an_event_found_by_its_name(inventory: Inventory):
    await inventory.fleet()
    for _ in range(2):
        async with inventory.db.transaction() as tx:
            await events.refused(tx, OwnName("main", "train"), UUID(int=5), "ann", "nodes: is 0")
            await events.refused(tx, OwnName("unknown", "train"), UUID(int=6), "ann", "nodes: is 0")
    assert told(await listed(inventory, kind="run", name="train")) == ["[user ann] run train refused: nodes: is 0"]
    assert await listed(inventory, kind="run", name="other") == []


async def test_events_go_with_their_run_and_others_with_time(inventory: Inventory):
    run_id, _ = await a_life(inventory)
    living = await inventory.run("living")
    await inventory.change("UPDATE runs SET ended_at = now() - interval '31 days' WHERE id = :id", id=run_id)
    await inventory.change("UPDATE events SET at = now() - interval '31 days' WHERE kind = 'fleet'")
    async with inventory.db.transaction() as tx:
        await retention.forget(tx, 30)
    left = {(row.targets[0].kind, row.targets[0].id) for row in await listed(inventory) if row.status}
    assert ("run", living) in left
    assert {kind for kind, _ in left} == {"run", "instance"}
    assert ("run", run_id) not in left
