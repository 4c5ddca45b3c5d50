"""Runs, end to end through real workflows and a real database, on simulated hosts."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from perdure.model.names import WORKFLOW_QUEUE
from perdure.model.statuses import JobReason
from tests.support.simulated import Script
from tests.workflows.conftest import Lab


async def test_a_task_runs_once_and_leaves_nothing(lab: Lab) -> None:
    handle = await lab.submit("hello")
    assert await lab.end(handle) == "done"
    assert lab.hosts.runs() == {(0, 0, 0): 1}
    await lab.at_rest()


async def test_whole_life_of_a_task_is_under_a_hundred_events(lab: Lab) -> None:
    warm = await lab.submit("warm")
    await lab.end(warm)
    handle = await lab.submit("counted")
    await lab.end(handle)
    run_id = (await handle.query("state"))["run"]["policy"]["run_id"]
    job = lab.client.get_workflow_handle(f"job/{run_id}/0-0/0")
    events = len((await handle.fetch_history()).events) + len((await job.fetch_history()).events)
    assert events < 100, events


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("retry", [False, True])
async def test_nodes_ending_in_any_order_are_one_execution(lab: Lab, order: tuple[int, ...], retry: bool) -> None:
    times = {node: 0.25 * place for place, node in enumerate(order)}
    lab.hosts.script = lambda replica, node, submission: Script(seconds=times[node])
    assert await lab.end(await lab.submit("gang", nodes=3, retry=retry)) == "done"
    assert lab.hosts.runs() == {(0, node, 0): 1 for node in range(3)}
    await lab.at_rest()


async def test_failed_node_retries_the_gang_whole(lab: Lab) -> None:
    lab.hosts.script = lambda replica, node, submission: (
        Script(exit_status=3) if (node, submission) == (1, 0) else Script(seconds=None if submission == 0 else 0.1)
    )
    assert await lab.end(await lab.submit("again", nodes=2, retry=True)) == "done"
    assert lab.hosts.runs() == {(0, node, submission): 1 for node in range(2) for submission in range(2)}
    await lab.at_rest()


async def test_failure_closes_the_workflow_as_failed_with_the_reason(lab: Lab) -> None:
    lab.hosts.script = lambda *_: Script(exit_status=7)
    ended = await lab.end(await lab.submit("bad"))
    assert ended.startswith("failed:")
    assert "status 7" in ended
    await lab.at_rest()


@pytest.mark.parametrize("abort", [False, True])
async def test_stop_of_a_running_task(lab: Lab, abort: bool) -> None:
    lab.hosts.script = lambda *_: Script(seconds=None, heeds=not abort)
    handle = await lab.submit("stopped", nodes=2)
    await lab.status(handle, "running")
    await handle.signal("stop", {"abort": abort})
    assert await lab.end(handle) == "terminated"
    await lab.at_rest()


async def test_second_stop_kills_what_ignores_the_first(lab: Lab) -> None:
    lab.hosts.script = lambda *_: Script(seconds=None, heeds=False)
    handle = await lab.submit("stubborn")
    await lab.status(handle, "running")
    await handle.signal("stop")
    await lab.status(handle, "terminating")
    await handle.signal("stop", {"abort": True})
    assert await lab.end(handle) == "terminated"
    await lab.at_rest()


async def test_stop_while_the_image_is_pulled(lab: Lab) -> None:
    lab.hosts.script = lambda *_: Script(submit_seconds=60)
    handle = await lab.submit("pulling")
    await lab.until(lambda: bool(lab.hosts.jobs))
    await handle.signal("stop")
    assert await lab.end(handle) == "terminated"
    assert lab.hosts.runs() == {(0, 0, 0): 0}
    await lab.at_rest()


async def test_temporals_cancel_is_a_graceful_stop(lab: Lab) -> None:
    lab.hosts.script = lambda *_: Script(seconds=None)
    handle = await lab.submit("cancelled")
    await lab.status(handle, "running")
    await handle.cancel()
    assert "cancel" in (await lab.end(handle)).lower()
    await lab.at_rest()


async def test_cancel_during_clean_up_loses_no_step(lab: Lab) -> None:
    lab.hosts.script = lambda *_: Script(seconds=None, heeds=False)
    handle = await lab.submit("crossed")
    await lab.status(handle, "running")
    await handle.signal("stop")
    await lab.status(handle, "terminating")
    run_id = (await handle.query("state"))["run"]["policy"]["run_id"]
    job = lab.client.get_workflow_handle(f"job/{run_id}/0-0/0")
    await asyncio.gather(handle.cancel(), job.cancel())
    await handle.signal("stop", {"abort": True})
    await lab.end(handle)
    await lab.at_rest()


async def test_no_capacity_without_retry_fails_at_once(lab: Lab) -> None:
    ended = await lab.end(await lab.submit("huge", resources={"cpu": "512.."}))
    assert ended.startswith("failed:")
    assert "wanted 512" in ended
    await lab.at_rest()


async def test_a_run_waits_for_capacity_and_starts_when_it_is_released(lab: Lab) -> None:
    lab.hosts.script = lambda *_: Script(seconds=None)
    holders = [await lab.submit(f"holder-{n}") for n in range(4)]
    for holder in holders:
        await lab.status(holder, "running")
    waiter = await lab.submit("waiter", retry=True)
    await lab.status(waiter, "submitted", "waiting")
    await holders[0].signal("stop")
    await lab.status(waiter, "running")
    for handle in (*holders[1:], waiter):
        await handle.signal("stop")
    for handle in (*holders, waiter):
        assert await lab.end(handle) == "terminated"
    await lab.at_rest()


async def test_fifty_runs_at_once_on_four_instances_all_run_once(lab: Lab) -> None:
    lab.hosts.script = lambda *_: Script(seconds=0.05)
    handles = await asyncio.gather(*(lab.submit(f"many-{n}", retry=True) for n in range(50)))
    ends = await asyncio.gather(*(lab.end(handle) for handle in handles))
    assert set(ends) == {"done"}
    assert len(lab.hosts.jobs) == 50
    await lab.at_rest()


async def test_name_is_free_again_after_the_end(lab: Lab) -> None:
    for _ in range(3):
        assert await lab.end(await lab.submit("same")) == "done"
    assert len(lab.hosts.jobs) == 3
    await lab.at_rest()


async def test_an_instance_that_cannot_be_made_fails_the_run_and_says_why(lab: Lab) -> None:
    lab.hosts.create_fails = lambda instance: "quota of local is used up"
    ended = await lab.end(await lab.submit("unlucky"))
    assert ended.startswith("failed:")
    await lab.at_rest()


async def test_a_job_out_of_reach_is_lost_and_its_block_is_quarantined(lab: Lab) -> None:
    lab.hosts.script = lambda *_: Script(seconds=None)
    handle = await lab.submit("lost")
    await lab.status(handle, "running")
    lab.hosts.unreachable |= lab.hosts.instances
    ended = await lab.end(handle)
    assert ended.startswith("failed:")
    lab.hosts.unreachable.clear()
    lab.hosts.script = lambda *_: Script()
    assert await lab.end(await lab.submit("next")) == "done"
    assert len(lab.hosts.instances) == 2, "the quarantined block was given away"
    await lab.at_rest()


BAD_INPUTS = [
    [1],
    {"x": 1},
    "text",
    7,
    {"configuration": {"type": "task"}},
    {"configuration": {"type": "nonsense"}},
]


@pytest.mark.parametrize("value", BAD_INPUTS, ids=repr)
async def test_bad_input_fails_the_workflow_with_the_field(lab: Lab, value: object) -> None:
    handle = await lab.client.start_workflow(
        "RunWorkflow", value, id="run/main/bad-input", task_queue=WORKFLOW_QUEUE
    )
    assert (await lab.end(handle)).startswith("failed:")
    await lab.at_rest()


async def test_no_input_at_all_fails_the_workflow(lab: Lab) -> None:
    handle = await lab.client.start_workflow("RunWorkflow", id="run/main/empty", task_queue=WORKFLOW_QUEUE)
    assert (await lab.end(handle)).startswith("failed:")


@pytest.mark.parametrize("workflow_id", ["hello", "run/main", "run/main/UPPER", "run/a/b/c", "job/main/x"])
async def test_a_workflow_id_that_is_no_run_is_refused(lab: Lab, workflow_id: str) -> None:
    request = {"configuration": {"type": "task", "commands": ["true"]}}
    handle = await lab.client.start_workflow("RunWorkflow", request, id=workflow_id, task_queue=WORKFLOW_QUEUE)
    assert "run/{project}/{name}" in await lab.end(handle)


async def test_a_refusing_host_fails_the_job_with_its_reason(lab: Lab) -> None:
    lab.hosts.script = lambda *_: Script(refuses=JobReason.CREATING_CONTAINER_ERROR)
    assert "refused by the script" in await lab.end(await lab.submit("refused"))
    await lab.at_rest()


async def test_a_transaction_that_keeps_failing_is_tried_until_it_works(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    from perdure.store import claims

    works, calls = claims.claim, 0

    async def fails(*args: object) -> object:
        nonlocal calls
        calls += 1
        if calls < 6:
            raise AttributeError("a bug of ours, or a database that is away")
        return await works(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(claims, "claim", fails)
    assert await lab.end(await lab.submit("patient")) == "done"
    assert calls == 6
    await lab.at_rest()


async def test_a_transaction_that_takes_too_long_is_run_as_an_activity_and_replays(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    from perdure.store import claims

    works, calls = claims.claim, 0

    async def slow(*args: object) -> object:
        nonlocal calls
        calls += 1
        if calls < 3:
            await asyncio.sleep(1000)
        return await works(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(claims, "claim", slow)
    lab.world.timing = lab.world.timing.but(local_activity=1.0)
    assert await lab.end(await lab.submit("slow")) == "done"
    assert calls == 3
    await lab.at_rest()
