"""Fleets that cannot have what they must have, and fleets that are changed and deleted meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest
from temporalio.client import WorkflowFailureError, WorkflowHandle, WorkflowUpdateFailedError
from temporalio.exceptions import ApplicationError

from perdure.model.messages import FleetInput
from perdure.model.names import APPLY, WORKFLOW_QUEUE
from tests.support.simulated import Script
from tests.support.waiting import eventually
from tests.workflows.conftest import QUICK, Lab

PAUSES = (0.3, 0.6)


async def make(lab: Lab, name: str = "pool", nodes: str = "1..2", **more: object) -> WorkflowHandle[Any, Any]:
    return await lab.client.start_workflow(
        "FleetWorkflow",
        FleetInput(configuration=fleet(name, nodes, **more), timing=QUICK.but(fleet_retry=PAUSES)),
        id=f"fleet/main/{name}",
        task_queue=WORKFLOW_QUEUE,
    )


def fleet(name: str = "pool", nodes: str = "1..2", **more: object) -> dict[str, object]:
    return {"type": "fleet", "name": name, "nodes": nodes, **more}


async def test_a_minimum_that_cannot_be_made_is_tried_again_after_longer_and_longer_pauses(lab: Lab) -> None:
    asked: list[UUID] = []

    def fails(instance: UUID) -> str | None:
        asked.append(instance)
        return "quota is used up" if len(asked) < 4 else None

    lab.hosts.create_fails = fails
    handle = await make(lab)
    await lab.until(lambda: len(lab.hosts.instances) == 1)
    assert len(asked) == 4
    assert await pauses(handle) == pytest.approx([0.3, 0.6, 0.6], abs=0.05)
    await lab.at_rest()


async def test_a_minimum_that_nothing_can_make_is_made_when_something_can(lab: Lab) -> None:
    backends, lab.world.backends = lab.world.backends, {}
    handle = await make(lab)
    await eventually(lambda: waits(handle))
    lab.world.backends = backends
    await lab.until(lambda: len(lab.hosts.instances) == 1)
    await lab.at_rest()


async def test_an_instance_of_the_minimum_that_is_lost_later_is_replaced_at_once(lab: Lab) -> None:
    handle = await make(lab)
    await eventually(lambda: is_idle(lab, 1))
    lost = next(iter(lab.hosts.instances))
    await lab.lose(lost)
    await lab.until(lambda: bool(lab.hosts.instances - {lost}))
    assert await pauses(handle) == []
    await eventually(lambda: is_idle(lab, 1))
    await lab.at_rest()


async def test_a_change_is_in_force_when_its_update_returns(lab: Lab) -> None:
    handle = await make(lab, nodes="0..2")
    await handle.execute_update(APPLY, fleet(nodes="2..2"))
    assert len(await lab.rows("SELECT id FROM instances")) == 2
    await eventually(lambda: is_idle(lab, 2))
    await lab.at_rest()


@pytest.mark.parametrize("wrong", [fleet(nodes="many"), {"type": "fleet", "name": "pool"}, {"nodez": 1}, [1], None])
async def test_a_change_that_is_refused_is_told_at_once_and_changes_nothing(lab: Lab, wrong: object) -> None:
    handle = await make(lab, nodes="0..2")
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await handle.execute_update(APPLY, wrong)
    assert isinstance(caught.value.cause, ApplicationError)
    assert caught.value.cause.type == "invalid-configuration"
    (row,) = await lab.rows("SELECT nodes_max FROM fleets WHERE name = 'pool'")
    assert row.nodes_max == 2
    await handle.signal("delete")
    assert await handle.result() == "deleted"


async def test_a_fleet_that_is_being_deleted_takes_no_change(lab: Lab) -> None:
    lab.hosts.script = lambda *_: Script(seconds=None)
    handle = await make(lab, nodes="0..2")
    run = await lab.submit("holder", fleets=["pool"])
    await lab.status(run, "running")
    await handle.signal("delete")
    with pytest.raises(WorkflowUpdateFailedError) as caught:
        await handle.execute_update(APPLY, fleet(nodes="0..4"))
    assert isinstance(caught.value.cause, ApplicationError)
    assert caught.value.cause.type == "conflict"
    await run.signal("stop")
    assert await lab.end(run) == "terminated"
    assert await handle.result() == "deleted"
    await lab.at_rest()


async def waits(handle: WorkflowHandle[Any, Any]) -> bool:
    return bool(await pauses(handle))


async def pauses(handle: WorkflowHandle[Any, Any]) -> list[Any]:
    """Seconds of each timer that the fleet has set."""
    history = await handle.fetch_history()
    return [
        pytest.approx(
            event.timer_started_event_attributes.start_to_fire_timeout.ToTimedelta().total_seconds(), abs=0.1
        )
        for event in history.events
        if event.HasField("timer_started_event_attributes")
    ]


async def is_idle(lab: Lab, count: int) -> bool:
    return len(await lab.rows("SELECT id FROM instances WHERE status = 'idle'")) == count


@pytest.mark.parametrize(
    ("id", "given", "words"),
    [
        ("fleet/main/pool", (), "configuration: is missing from the workflow's input"),
        ("fleet/main/pool", ([1],), "configuration: is missing from the workflow's input"),
        ("fleet/main/pool", ({"configuration": 5},), "configuration: Input should be a valid dictionary"),
        ("fleet/main", ({"configuration": {}},), "start it as fleet/{project}/{name}"),
        ("fleet/main/Pool", ({"configuration": {}},), "start it as fleet/{project}/{name}"),
        ("fleet/main/pool", ({"configuration": {"type": "task"}},), "where fleet is wanted"),
    ],
)
async def test_a_malformed_request_fails_at_once(lab: Lab, id: str, given: tuple[object, ...], words: str) -> None:
    handle = await lab.client.start_workflow("FleetWorkflow", args=given, id=id, task_queue=WORKFLOW_QUEUE)
    with pytest.raises(WorkflowFailureError) as caught:
        await asyncio.wait_for(handle.result(), 60)
    assert isinstance(caught.value.cause, ApplicationError)
    assert words in str(caught.value.cause)
