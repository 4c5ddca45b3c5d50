"""How a workflow reaches the world: transactions, remote steps, news to other workflows, cancels that do not break.

Each rule here was measured (``docs/decisions/0001-temporal-rules.md``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import Priority, RetryPolicy
from temporalio.exceptions import ActivityError, ApplicationError, FailureError

with workflow.unsafe.imports_passed_through():
    from perdure.model.activities import Activity
    from perdure.model.base import Message
    from perdure.model.errors import PerdureError
    from perdure.model.events import Nudge
    from perdure.model.names import PRIORITY_NORMAL, SIGNAL_TELL
    from perdure.model.problems import problem_of
    from perdure.model.timing import Timing

In = TypeVar("In", bound=Message)
Out = TypeVar("Out", bound=Message)
T = TypeVar("T")


async def transact(step: Activity[In, Out], value: In, timing: Timing, *, summary: str | None = None) -> Out:
    """One short Postgres transaction, in this workflow task; if the database does not answer at once, as an
    activity of its own, for as long as it takes. (A slow local activity holds signals and other workflows back.)
    """
    try:
        return await workflow.execute_local_activity(
            step.name,
            value,
            result_type=step.gives,
            start_to_close_timeout=timedelta(seconds=timing.local_activity),
            retry_policy=RetryPolicy(maximum_attempts=2, initial_interval=timedelta(milliseconds=50)),
            summary=summary,
        )
    except FailureError as error:
        # One that failed comes bare; one that took too long comes wrapped, and bare when it is replayed (tried).
        cause = error.cause if isinstance(error, ActivityError) else error
        if isinstance(cause, ApplicationError) and cause.non_retryable:
            raise
    return await workflow.execute_activity(
        step.name,
        value,
        result_type=step.gives,
        task_queue=step.kind.value,
        start_to_close_timeout=timedelta(seconds=max(10 * timing.local_activity, 5)),
        retry_policy=_retry(timing),
        priority=_priority(),
        summary=summary,
    )


def start(
    step: Activity[In, Out],
    value: In,
    timing: Timing,
    *,
    limit: float,
    heartbeat: float | None = None,
    summary: str | None = None,
    priority: int | None = None,
    cancelled: workflow.ActivityCancellationType = workflow.ActivityCancellationType.TRY_CANCEL,
) -> workflow.ActivityHandle[Out]:
    """Start a remote step of at most ``limit`` seconds a try, tried until it answers; a cancel does not wait, if
    ``cancelled`` does not say otherwise."""
    return workflow.start_activity(
        step.name,
        value,
        result_type=step.gives,
        task_queue=step.kind.value,
        start_to_close_timeout=timedelta(seconds=limit),
        heartbeat_timeout=timedelta(seconds=heartbeat if heartbeat is not None else timing.heartbeat),
        retry_policy=_retry(timing),
        cancellation_type=cancelled,
        priority=_priority() if priority is None else Priority(priority_key=priority),
        summary=summary,
    )


def unheeded(work: asyncio.Task[Any]) -> None:
    """Nobody waits for how this ends: a step that was cancelled, a child that tells it by a signal."""
    work.add_done_callback(lambda done: done.cancelled() or done.exception())


def let_go(step: workflow.ActivityHandle[Any]) -> None:
    """Cancel a step whose answer nobody wants any more."""
    unheeded(step)
    step.cancel()


async def tell(nudges: Iterable[Nudge]) -> None:
    """Tell other workflows, each a row already. One that is closed is an ordinary answer."""
    await asyncio.gather(*(_tell(nudge) for nudge in nudges))


async def _tell(nudge: Nudge) -> None:
    try:
        await workflow.get_external_workflow_handle(nudge.workflow_id).signal(SIGNAL_TELL, nudge.news)
    except ApplicationError as error:
        if error.type != "ExternalWorkflowExecutionNotFound":
            raise
        workflow.logger.info("%s is closed: not told %s", nudge.workflow_id, nudge.news.kind)


def refusal(error: PerdureError) -> ApplicationError:
    """An expected error as a client reads it: of type ``error.code``, with a ``Problem`` as its details."""
    return ApplicationError(error.message, problem_of(error), type=error.code, non_retryable=True)


async def unbroken(life: Coroutine[Any, Any, T], on_cancel: Callable[[], None]) -> T:
    """Run ``life`` to its own end. Temporal's Cancel becomes a call of ``on_cancel``, never an exception inside.

    (Tried: a cancel during a shielded ``finally`` closed the workflow with a step never run.)
    """
    task = asyncio.create_task(life)
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.done():
                on_cancel()
    return task.result()


def _retry(timing: Timing) -> RetryPolicy:
    return RetryPolicy(
        initial_interval=timedelta(seconds=timing.activity_retry),
        maximum_interval=timedelta(seconds=timing.activity_retry_max),
    )


def _priority() -> Priority:
    """What the workflow itself was started with; people's runs go before sweeps."""
    return Priority(priority_key=workflow.info().priority.priority_key or PRIORITY_NORMAL)
