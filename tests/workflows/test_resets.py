"""Temporal's reset, with real workflows and a real database: the new execution takes up what the old one left."""

from __future__ import annotations

from typing import Any

from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import WorkflowHandle

from tests.support.simulated import Script
from tests.support.waiting import eventually
from tests.workflows.conftest import Lab


async def reset(lab: Lab, handle: WorkflowHandle[Any, Any]) -> WorkflowHandle[Any, Any]:
    """To the first thing the run did; the handle is of its new execution."""
    history = await handle.fetch_history()
    completed = [
        event.event_id for event in history.events if event.HasField("workflow_task_completed_event_attributes")
    ]
    await lab.client.workflow_service.reset_workflow_execution(
        ResetWorkflowExecutionRequest(
            namespace=lab.client.namespace,
            workflow_execution=WorkflowExecution(workflow_id=handle.id),
            reason="test",
            workflow_task_finish_event_id=completed[0],
            request_id="reset-1",
        )
    )
    return lab.client.get_workflow_handle(handle.id)


async def jobs(handle: WorkflowHandle[Any, Any]) -> list[dict[str, Any]]:
    """As the run knows them, of its latest submission."""
    run = (await handle.query("state"))["run"]
    return run["replicas"][0]["jobs"] if run else []


async def ended(handle: WorkflowHandle[Any, Any], node: int) -> bool:
    """Whether the run has heard of this node's end."""
    return any(job["node"] == node and job["ended_at"] for job in await jobs(handle))


async def started(handle: WorkflowHandle[Any, Any]) -> bool:
    return any(job["started"] for job in await jobs(handle))


async def test_after_a_reset_nothing_runs_twice(lab: Lab) -> None:
    handle = await lab.submit("reset", nodes=2)
    assert await lab.end(handle) == "done"
    assert await lab.end(await reset(lab, handle)) == "done"
    assert lab.hosts.runs() == {(0, 0, 0): 1, (0, 1, 0): 1}
    await lab.at_rest()


async def test_a_gang_that_had_half_ended_goes_on_after_a_reset(lab: Lab) -> None:
    lab.hosts.script = lambda replica, node, submission: Script(seconds=0.1 if node == 0 else None)
    handle = await lab.submit("half", nodes=2)
    await eventually(lambda: ended(handle, 0))
    again = await reset(lab, handle)
    await eventually(lambda: ended(again, 0))
    await again.signal("stop")
    assert await lab.end(again) == "terminated"
    assert lab.hosts.runs() == {(0, 0, 0): 1, (0, 1, 0): 1}
    await lab.at_rest()


async def test_a_stop_right_after_a_reset_ends_what_ran_before(lab: Lab) -> None:
    lab.hosts.script = lambda *_: Script(seconds=None)
    handle = await lab.submit("stopped")
    await lab.status(handle, "running")
    again = await reset(lab, handle)
    await again.signal("stop")
    assert await lab.end(again) == "terminated"
    await lab.at_rest()


async def test_a_reset_of_a_run_that_is_tried_again_begins_with_its_latest_try(lab: Lab) -> None:
    lab.hosts.script = lambda replica, node, submission: (
        Script(seconds=None) if submission == 1 else Script(exit_status=3)
    )
    handle = await lab.submit("again", retry=True)
    await lab.until(lambda: lab.hosts.runs().get((0, 0, 1)) == 1)
    await lab.status(handle, "running")
    again = await reset(lab, handle)
    await eventually(lambda: started(again))
    assert (await again.query("state"))["run"]["replicas"][0]["submission"] == 1
    await again.signal("stop")
    assert await lab.end(again) == "terminated"
    assert lab.hosts.runs() == {(0, 0, 0): 1, (0, 0, 1): 1}
    await lab.at_rest()
