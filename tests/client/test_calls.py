"""Calls through a real Temporal server, with and without a worker that answers."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from temporalio import activity, workflow
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
from temporalio.client import Client
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from perdure.client.calls import LARGEST, TAKEN_WITHIN
from perdure.client.client import PerdureClient
from perdure.client.connection import Place
from perdure.model.api import Hello, Problem, RunQuery, RunRow, RunRows
from perdure.model.errors import (
    Conflict,
    ControlPlaneError,
    FieldError,
    InvalidConfiguration,
    NotFound,
    PerdureError,
    UserError,
)
from perdure.model.messages import Nothing, RunRequest
from perdure.model.names import IO_QUEUE, SEARCH_ATTRIBUTES, WORKFLOW_QUEUE
from tests.support.waiting import eventually

HELLO = Hello(version="1", installation=uuid4(), public_key="", blobs="/nowhere", code_limit=1)
ROW = RunRow(run_id=uuid4(), project="main", name="x", status="running", submitted_at="2026-01-01T00:00:00Z")


@activity.defn(name="hello")
async def hello(_: Nothing) -> Hello:
    return HELLO


@activity.defn(name="list_runs")
async def list_runs(query: RunQuery) -> RunRows:
    """Answers in every way there is, by the name asked for."""
    if query.name == "gone":
        return RunRows()
    if query.name == "bad":
        problem = Problem(
            code="invalid-configuration", message="", errors=(FieldError(path="env", message="is odd", line=3),)
        )
        raise ApplicationError("bad", problem, type=problem.code, non_retryable=True)
    if query.name == "bug":
        raise ApplicationError("KeyError: 'x'", type="KeyError", non_retryable=True)
    return RunRows(runs=(ROW,))


@workflow.defn(name="RunWorkflow")
class FakeRun:
    def __init__(self) -> None:
        self.stops: list[Any] = []

    @workflow.run
    async def run(self, request: Any) -> list[Any]:
        if request["configuration"].get("refuse"):
            problem = Problem(
                code="invalid-configuration", message="", errors=(FieldError(path="x", message="no"),)
            )
            raise ApplicationError("no", problem, type=problem.code, non_retryable=True)
        await workflow.wait_condition(lambda: bool(self.stops))
        return [*self.stops, request]

    @workflow.signal
    def stop(self, request: Any) -> None:
        self.stops.append(request)


@workflow.defn(name="RunWorkflow")
class Deaf:
    @workflow.run
    async def run(self, _: Any) -> None:
        raise RuntimeError("a bug of ours")


@asynccontextmanager
async def a_worker(client: Client) -> AsyncIterator[None]:
    async with (
        Worker(client, task_queue=IO_QUEUE, activities=[hello, list_runs]),
        Worker(client, task_queue=WORKFLOW_QUEUE, workflows=[FakeRun], workflow_runner=UnsandboxedWorkflowRunner()),
    ):
        yield


@pytest.fixture
async def perdure(temporal: Client) -> PerdureClient:
    for name, kind in SEARCH_ATTRIBUTES.items():
        value = IndexedValueType.Value(
            "INDEXED_VALUE_TYPE_" + {"KeywordList": "KEYWORD_LIST"}.get(kind, kind.upper())
        )
        try:
            await temporal.operator_service.add_search_attributes(
                AddSearchAttributesRequest(namespace="default", search_attributes={name: value})
            )
        except RPCError as error:
            assert "already" in error.message
    return PerdureClient(temporal, Place(temporal.service_client.config.target_host, "default", "a test"))


async def test_no_worker_is_told_long_before_a_busy_one_is_given_up(perdure: PerdureClient):
    began = time.monotonic()
    with pytest.raises(ControlPlaneError, match="no worker is running") as caught:
        await perdure.hello()
    assert time.monotonic() - began < TAKEN_WITHIN
    assert caught.value.hint and "perdure up" in caught.value.hint


async def test_a_dead_worker_of_the_embedded_stack_is_told_though_temporal_remembers_it(
    temporal: Client, tmp_path: Path
):
    dead = subprocess.Popen(["true"])
    dead.wait()
    stack = tmp_path / "stack.json"
    stack.write_text(json.dumps({"temporal": "x", "pids": {"worker": dead.pid}}))
    place = Place("127.0.0.1:1", "default", "a test", stack=stack)
    client = PerdureClient(temporal, place)
    async with a_worker(temporal):
        await client.hello()
    with pytest.raises(ControlPlaneError, match="no worker is running"):
        await client.list_runs("main")
    stack.write_text(json.dumps({"temporal": "x", "pids": {"worker": os.getpid()}}))
    assert not place.worker_is_dead()
    assert not Place("x", "y", "z").worker_is_dead()


async def test_a_worker_that_is_away_for_a_while_is_outlasted_by_who_follows_a_run(
    temporal: Client, perdure: PerdureClient
):
    perdure.be_patient(30)
    asked = asyncio.create_task(perdure.list_runs("main"))
    await asyncio.sleep(1.5)
    async with a_worker(temporal):
        assert await asked == (ROW,)


async def test_answers_and_errors_come_back_typed(temporal: Client, perdure: PerdureClient):
    async with a_worker(temporal):
        assert await perdure.hello() == HELLO
        assert await perdure.list_runs("main") == (ROW,)
        with pytest.raises(InvalidConfiguration) as caught:
            await perdure.get_run("main", "bad")
        assert caught.value.errors[0].line == 3
        with pytest.raises(NotFound, match="no run gone in project main"):
            await perdure.get_run("main", "gone")
        with pytest.raises(PerdureError, match="the worker failed: KeyError"):
            await perdure.get_run("main", "bug")


async def test_a_run_is_started_stopped_and_its_end_awaited(temporal: Client, perdure: PerdureClient):
    async with a_worker(temporal):
        run_id = await perdure.apply("main", "life", RunRequest(configuration={"type": "task"}, user="ann"))
        with pytest.raises(Conflict, match="a run life of project main has not ended"):
            await perdure.apply("main", "life", RunRequest(configuration={}))
        ended = asyncio.create_task(perdure.wait("main", "life", run_id))
        assert await perdure.stop("main", "life", abort=True, by="bob")
        assert await ended == ROW
        handle = temporal.get_workflow_handle("run/main/life")
        described = await handle.describe()
        assert described.typed_search_attributes.search_attributes
        assert await described.static_summary() == "task life of ann"
        stop, request = await handle.result()
        assert stop == {"abort": True, "by": "bob"}
        assert request["configuration"] == {"type": "task"}
        assert await perdure.stop("main", "life") is False
        again = await perdure.apply("main", "life", RunRequest(configuration={}))
        assert again != run_id
        await perdure.stop("main", "life")


async def test_a_refused_configuration_is_told_when_its_end_is_awaited(temporal: Client, perdure: PerdureClient):
    async with a_worker(temporal):
        run_id = await perdure.apply("main", "refused", RunRequest(configuration={"refuse": True}))
        with pytest.raises(InvalidConfiguration, match="x: no"):
            await perdure.wait("main", "refused", run_id)


async def test_a_run_that_cannot_hear_is_ended_by_an_abort(temporal: Client, perdure: PerdureClient):
    async with Worker(
        temporal, task_queue=WORKFLOW_QUEUE, workflows=[Deaf], workflow_runner=UnsandboxedWorkflowRunner()
    ):
        await perdure.apply("main", "deaf", RunRequest(configuration={}))
        handle = temporal.get_workflow_handle("run/main/deaf")
        await _attempts(handle, 3)
        with pytest.raises(ControlPlaneError, match="perdure-sweep"):
            # There is no sweep's schedule on this server; ending the run comes first.
            for _ in range(600):  # between two tries of its task, Temporal tells of none
                await perdure.stop("main", "deaf", abort=True)
                await asyncio.sleep(0.1)
        described = await handle.describe()
        assert described.status is not None and described.status.name == "TERMINATED"


@pytest.mark.parametrize(
    ("project", "name"), [("a/b", "ok"), ("main", "Not-A-Name"), ("main", "x" * 42), ("", "ok")]
)
async def test_what_is_no_name_never_reaches_temporal(perdure: PerdureClient, project: str, name: str):
    with pytest.raises(UserError, match="is not"):
        await perdure.apply(project, name, RunRequest(configuration={}))


async def test_an_environment_of_megabytes_is_refused_with_its_size(perdure: PerdureClient):
    request = RunRequest(configuration={"env": {"BIG": "x" * (LARGEST + 1)}})
    with pytest.raises(UserError, match=r"1\.5 MB"):
        await perdure.apply("main", "big", request)


async def test_another_namespace_is_named_in_the_error(temporal_server: str):
    place = Place(temporal_server, "nowhere", "a test")
    client = await PerdureClient.connect(place)
    with pytest.raises(UserError, match="no namespace 'nowhere'"):
        await client.get_run("main", run_id=UUID(int=1))


async def _attempts(handle: Any, wanted: int) -> None:
    async def tried() -> bool:
        return (await handle.describe()).raw_description.pending_workflow_task.attempt >= wanted

    await eventually(tried, "the workflow task to fail")
