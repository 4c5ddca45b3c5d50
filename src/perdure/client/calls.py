"""Calls: one standalone activity each, executed by a worker and awaited here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import NoReturn, TypeVar
from uuid import uuid4

from pydantic import ValidationError
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import ActivityFailureError, ActivityHandle, Client, PendingActivityState
from temporalio.common import Priority, RetryPolicy
from temporalio.exceptions import ApplicationError, TimeoutError, TimeoutType
from temporalio.service import RPCError, RPCStatusCode

from perdure.client.connection import Place
from perdure.client.room import HINT
from perdure.model.activities import Activity
from perdure.model.api import Problem
from perdure.model.base import Message
from perdure.model.errors import ControlPlaneError, PerdureError, UserError
from perdure.model.names import PRIORITY_PERSON
from perdure.model.problems import error_of

In = TypeVar("In", bound=Message)
Out = TypeVar("Out", bound=Message)
T = TypeVar("T")

SUSPICIOUS_AFTER = 1.0
"""Seconds without a worker having taken a call before we look whether there is one."""

TAKEN_WITHIN = 10.0
"""Seconds in which a busy worker must have taken a call."""

AGAIN_AFTER = 0.5
"""Seconds between two tries, while the control plane is away."""

HEARTBEAT = 5.0
"""Seconds."""

LARGEST = 1_500_000
"""Bytes of one call's input. Temporal refuses 2 MiB; code never travels this way, so only ``env`` gets there."""

POLLS_EVERY = 70.0
"""A living worker asks for work at least once a minute (Temporal's long poll)."""

NO_WORKER_HINT = "`perdure status` shows the embedded stack; `perdure up` starts a worker"


class Calls:
    """One connection's calls."""

    def __init__(self, client: Client, place: Place):
        self.client = client
        self.place = place
        self.patience = 0.0
        """Seconds to outlast a worker or a Temporal that is away."""

    async def __call__(
        self, call: Activity[In, Out], request: In, *, within: float = 10.0, beats: bool = False
    ) -> Out:
        """Execute one call. ``within``: seconds it may run, its own long polling included. ``beats``: the worker
        heartbeats, so that one that dies is noticed at once.

        Raises:
            ControlPlaneError: no worker takes it, or Temporal does not answer.
            PerdureError: what the worker answered.
        """
        check_size(request)
        return await self.patiently(lambda: self._once(call, request, within, beats))

    async def patiently(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do it, and again while the control plane is away, for as long as ``patience`` says. Only for what may be
        done twice."""
        until = time.monotonic() + self.patience
        while True:
            try:
                return await work()
            except ControlPlaneError:
                if time.monotonic() > until:
                    raise
                await asyncio.sleep(AGAIN_AFTER)

    async def _once(self, call: Activity[In, Out], request: In, within: float, beats: bool) -> Out:
        try:
            handle = await self._start(call, request, within, beats)
            result = asyncio.ensure_future(handle.result())
            try:
                await self._taken(result, handle, call.kind)
                return await result
            finally:
                result.cancel()
        except ActivityFailureError as error:
            _raise_failure(error, call.name, self.place)
        except RPCError as error:
            raise unreachable(error, self.place) from error

    async def _start(self, call: Activity[In, Out], request: In, within: float, beats: bool) -> ActivityHandle[Out]:
        started = self.client.start_activity(
            call.name,
            request,
            id=f"{call.name}/{uuid4()}",
            task_queue=call.kind,
            result_type=call.gives,
            schedule_to_start_timeout=timedelta(seconds=TAKEN_WITHIN),
            start_to_close_timeout=timedelta(seconds=within),
            schedule_to_close_timeout=timedelta(seconds=within + TAKEN_WITHIN),
            heartbeat_timeout=timedelta(seconds=HEARTBEAT) if beats else None,
            retry_policy=RetryPolicy(initial_interval=timedelta(milliseconds=200), maximum_attempts=3),
            priority=Priority(priority_key=PRIORITY_PERSON),
        )
        return await promptly(self.place, started)

    async def _taken(self, result: asyncio.Future[Out], handle: ActivityHandle[Out], queue: str) -> None:
        """
        Raises:
            ControlPlaneError: nobody took it, and no worker is there to take it.
        """
        done, _ = await asyncio.wait([result], timeout=SUSPICIOUS_AFTER)
        if done:
            return
        described = await promptly(self.place, handle.describe())
        if described.run_state is not PendingActivityState.SCHEDULED or described.last_started_time is not None:
            return
        if self.place.worker_is_dead() or not await self.has_worker(queue):
            raise self.place.fault(
                f"no worker is running: Temporal at {self.place.address} has nobody for its queue {queue}",
                hint=NO_WORKER_HINT,
            )

    async def has_worker(self, queue: str) -> bool:
        """Whether a worker has asked for activities on ``queue`` lately."""
        answer = await self.client.workflow_service.describe_task_queue(
            DescribeTaskQueueRequest(
                namespace=self.client.namespace,
                task_queue=TaskQueue(name=queue),
                task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_ACTIVITY,
            )
        )
        oldest = datetime.now(UTC) - timedelta(seconds=POLLS_EVERY)
        return any(poller.last_access_time.ToDatetime(UTC) > oldest for poller in answer.pollers)


async def promptly(place: Place, rpc: Awaitable[T]) -> T:
    """A call of Temporal's own that answers at once, if it can: with its disk full it would be retried in vain.

    Raises:
        ControlPlaneError: it hangs, and the disk is full.
    """
    answer = asyncio.ensure_future(rpc)
    try:
        await asyncio.wait([answer], timeout=SUSPICIOUS_AFTER)
        if not answer.done() and (full := place.shortage()) is not None:
            raise ControlPlaneError(full, hint=HINT)
        return await answer
    finally:
        answer.cancel()


def check_size(request: Message) -> None:
    """
    Raises:
        UserError: it would not fit through Temporal.
    """
    size = len(request.model_dump_json())
    if size > LARGEST:
        raise UserError(
            f"the configuration is {size / 1e6:.1f} MB with its environment; {LARGEST / 1e6:.1f} MB is the most",
            hint="put large values in a file and list it under `files:`",
        )


def unreachable(error: RPCError, place: Place) -> PerdureError:
    """A failed RPC, in words."""
    if error.status in (RPCStatusCode.PERMISSION_DENIED, RPCStatusCode.UNAUTHENTICATED):
        return UserError(
            f"Temporal at {place.address} refuses these credentials (from {place.source}): {error.message}",
            hint="check TEMPORAL_API_KEY and the TLS settings",
        )
    if error.status is RPCStatusCode.NOT_FOUND and "namespace" in error.message.lower():
        return UserError(
            f"Temporal at {place.address} has no namespace {place.namespace!r}", hint="set TEMPORAL_NAMESPACE"
        )
    return place.fault(
        f"Temporal at {place.address} (from {place.source}) did not do it: {error.message or error.status.name}",
        hint="`perdure status` shows the embedded stack",
    )


def problem_in(error: ApplicationError) -> PerdureError:
    """The expected error that a worker raised; one that nobody expected is ours, and says so."""
    try:
        return error_of(Problem.model_validate(error.details[0]))
    except (IndexError, ValidationError):
        return PerdureError(
            f"the worker failed: {error.message}",
            hint="its log says more; the embedded stack's is under PERDURE_HOME",
        )


def _raise_failure(error: ActivityFailureError, name: str, place: Place) -> NoReturn:
    cause = error.cause
    if isinstance(cause, ApplicationError):
        raise problem_in(cause) from error
    if isinstance(cause, TimeoutError):
        if cause.type in (TimeoutType.SCHEDULE_TO_START, TimeoutType.SCHEDULE_TO_CLOSE):
            raise place.fault(f"no worker answered the call {name} in time", NO_WORKER_HINT) from error
        raise place.fault(f"the worker did not answer {name} in time", NO_WORKER_HINT) from error
    raise place.fault(f"the call {name} failed: {cause or error}", None) from error
