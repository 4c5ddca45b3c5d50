"""The story of a run, also of one that a worker refused: of that only Temporal knows."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from perdure.client.calls import problem_in, unreachable
from perdure.model.api import Story, StoryQuery
from perdure.model.errors import FieldError, InvalidConfiguration, NotFound
from perdure.model.ids import run_workflow_id

if TYPE_CHECKING:
    from perdure.client.client import PerdureClient


async def story(client: PerdureClient, project: str, name: str | None, run_id: UUID | None) -> Story:
    """Of the newest run of a name, or the one with an id. One that was refused after it is its story, too.

    Raises:
        NotFound: there is none.
    """
    try:
        told = await client.told(StoryQuery(project=project, name=name, run_id=run_id))
    except NotFound:
        refused = await _refused(client, project, name) if name is not None else None
        if refused is None:
            raise
        return refused
    if name is None or told.ended_at is None:
        return told
    refused = await _refused(client, project, name)
    if refused is None or not _later(refused.submitted_at, told.submitted_at):
        return told
    earlier = f"The run before it: {told.headline}"
    return refused.but(beginning=(*refused.beginning, earlier))


def _later(one: datetime | None, other: datetime | None) -> bool:
    return one is not None and other is not None and one > other


async def _refused(client: PerdureClient, project: str, name: str) -> Story | None:
    """The last submission of that name, if a worker refused its configuration."""
    handle = client.temporal.get_workflow_handle(run_workflow_id(project, name))
    try:
        described = await handle.describe()
        failed = described.status is WorkflowExecutionStatus.FAILED
        cause = await _failure(handle) if failed else None
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return None
        raise unreachable(error, client.place) from error
    problem = problem_in(cause) if cause is not None else None
    if not isinstance(problem, InvalidConfiguration):
        return None
    return _told(project, name, problem.errors, described.start_time, described.close_time)


async def _failure(handle: WorkflowHandle[Any, Any]) -> ApplicationError | None:
    try:
        await handle.result()
    except WorkflowFailureError as error:
        return error.cause if isinstance(error.cause, ApplicationError) else None
    return None


def _told(
    project: str, name: str, mistakes: list[FieldError], submitted: datetime, ended: datetime | None
) -> Story:
    count = f"{len(mistakes)} mistake{'s' if len(mistakes) != 1 else ''}"
    return Story(
        project=project,
        name=name,
        status="refused",
        headline=f"{name} was refused, and there is no run: its configuration has {count}.",
        beginning=tuple(_words(mistake) for mistake in mistakes),
        next=(f"Nothing. Set it right and submit it again: perdure apply -n {name}",),
        submitted_at=submitted,
        ended_at=ended,
    )


def _words(mistake: FieldError) -> str:
    said = f"{mistake.path}: {mistake.message}" if mistake.path else mistake.message
    return f"{said} ({mistake.hint})" if mistake.hint else said
