"""Whatever JSON can be, and what it cannot: a workflow that is started with it fails at once, with a sentence."""

from __future__ import annotations

import asyncio

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.client import WorkflowFailureError
from temporalio.common import RawValue
from temporalio.exceptions import ApplicationError

from perdure.model.names import WORKFLOW_QUEUE
from tests.workflows.conftest import Lab

CODE = '{"configuration": {"type": "task", "commands": ["true"]}, "code": [%s]}'
DEEP = "[" * 300 + "]" * 300

HOSTILE = {
    "not JSON": ("{", "is not JSON that can be read"),
    "surrogate": (r'{"configuration": {"a": "\ud800"}}', "configuration.a: has half of a character"),
    "surrogate key": (r'{"configuration": {"\ud800": 1}}', "configuration: has half of a character"),
    "NUL": (r'{"configuration": {}, "user": "\u0000"}', "user: has a NUL character"),
    "NUL key": (r'{"configuration": {}, "sealed": {"\u0000": "x"}}', "sealed: has a NUL character"),
    "deep": (f'{{"configuration": {{"tags": {DEEP}}}}}', "levels deep"),
    "deeper": ("[" * 100_000 + "]" * 100_000, ""),
    "digits": ('{"configuration": {"nodes": %s}}' % ("9" * 5000), "is not JSON that can be read"),
    "large": (
        '{"configuration": {"nodes": %s}}' % ("9" * 30),
        "configuration.nodes: is a number beyond all bounds",
    ),
    "infinite": ('{"configuration": {"nodes": 1e999}}', "configuration.nodes: is inf"),
    "long user": ('{"configuration": {}, "user": "%s"}' % ("u" * 300_000), "user: String should have at most 200"),
    "code": (CODE % '{"sha256": "../..", "size": 1}', "code.0.sha256: String should match"),
    "size": (CODE % ('{"sha256": "%s", "size": -1}' % ("a" * 64)), "code.0.size: Input should be greater"),
}


def raw(text: str, encoding: str = "json/plain") -> RawValue:
    return RawValue(Payload(metadata={"encoding": encoding.encode()}, data=text.encode()))


async def refused(lab: Lab, workflow: str, given: RawValue) -> str:
    kind = workflow.removesuffix("Workflow").lower()
    handle = await lab.client.start_workflow(workflow, given, id=f"{kind}/main/odd", task_queue=WORKFLOW_QUEUE)
    with pytest.raises(WorkflowFailureError) as caught:
        await asyncio.wait_for(handle.result(), 60)
    assert isinstance(caught.value.cause, ApplicationError)
    assert caught.value.cause.type == "invalid-configuration"
    return str(caught.value.cause)


@pytest.mark.parametrize("name", HOSTILE)
async def test_an_input_that_nothing_can_hold_fails_a_run_at_once(lab: Lab, name: str) -> None:
    text, words = HOSTILE[name]
    assert words in await refused(lab, "RunWorkflow", raw(text))


@pytest.mark.parametrize("name", ["surrogate", "NUL", "deep", "digits", "long user"])
async def test_an_input_that_nothing_can_hold_fails_a_fleet_at_once(lab: Lab, name: str) -> None:
    text, words = HOSTILE[name]
    assert words in await refused(lab, "FleetWorkflow", raw(text))


async def test_an_input_in_another_encoding_is_refused(lab: Lab) -> None:
    for encoding in ("binary/plain", "json/protobuf", "x/y"):
        assert "where json/plain is wanted" in await refused(lab, "RunWorkflow", raw("x", encoding))
