"""The story of a run that was refused: no row knows of it, Temporal does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from temporalio import activity
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

from activities.errors import translated
from perdure.client.client import PerdureClient
from perdure.model.api import Story, StoryQuery
from perdure.model.errors import InvalidConfiguration, NotFound
from perdure.model.messages import RunRequest
from perdure.model.names import IO_QUEUE, WORKFLOW_QUEUE
from tests.client.test_calls import FakeRun, perdure

__all__ = ["perdure"]

NOW = datetime.now(UTC)
DONE = Story(
    project="main",
    name="again",
    status="done",
    headline="again is done: it ended.",
    submitted_at=NOW - timedelta(hours=1),
    ended_at=NOW - timedelta(minutes=50),
)
LIVING = DONE.but(name="living", status="running", headline="living is running.", ended_at=None)


@activity.defn(name="explain_run")
@translated
async def explain_run(query: StoryQuery) -> Story:
    for story in (DONE, LIVING):
        if story.name == query.name:
            return story
    raise NotFound(f"there is no run {query.name}")


@asynccontextmanager
async def a_worker(client: Client) -> AsyncIterator[None]:
    async with (
        Worker(client, task_queue=IO_QUEUE, activities=[explain_run]),
        Worker(client, task_queue=WORKFLOW_QUEUE, workflows=[FakeRun], workflow_runner=UnsandboxedWorkflowRunner()),
    ):
        yield


async def refuse(perdure: PerdureClient, name: str) -> None:
    run_id = await perdure.apply("main", name, RunRequest(configuration={"refuse": True}))
    with pytest.raises(InvalidConfiguration):
        await perdure.closed("main", name, run_id)


async def test_a_refused_configuration_is_told_with_its_mistakes(temporal: Client, perdure: PerdureClient):
    async with a_worker(temporal):
        await refuse(perdure, "wrong")
        story = await perdure.story("main", "wrong")
    assert (story.status, story.run_id) == ("refused", None)
    assert story.headline == "wrong was refused, and there is no run: its configuration has 1 mistake."
    assert story.beginning == ("x: no",)
    assert story.next == ("Nothing. Set it right and submit it again: perdure apply -n wrong",)


async def test_a_refused_submission_after_a_run_of_the_name_is_told_first(temporal: Client, perdure: PerdureClient):
    async with a_worker(temporal):
        assert await perdure.story("main", "again") == DONE
        await refuse(perdure, "again")
        story = await perdure.story("main", "again")
        assert story.status == "refused"
        assert story.beginning[-1] == "The run before it: again is done: it ended."
        assert await perdure.story("main", "living") == LIVING


async def test_of_a_run_that_never_was_there_is_no_story(temporal: Client, perdure: PerdureClient):
    async with a_worker(temporal):
        with pytest.raises(NotFound):
            await perdure.story("main", "never")
