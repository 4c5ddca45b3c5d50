"""Talking to agents that may be slow, silent for a while, or gone: heartbeats, patience, and where a job lives."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from temporalio import activity

from activities.world import World
from perdure.agents.client import RunnerClient, ShimClient
from perdure.agents.protocol import TaskInfo
from perdure.backends import Backend, Endpoint
from perdure.model.errors import AgentRefused, AgentUnreachable, ControlPlaneError, InstanceGone
from perdure.model.messages import JobOutcome, JobStep
from perdure.model.statuses import JobReason
from perdure.store import instances, jobs
from perdure.store.instances import InstanceRecord
from perdure.store.jobs import JobContext

T = TypeVar("T")

NOT_FOUND = 404
NOT_IT = (401, 421)
"""Another token, another instance."""

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
"""Seconds between two tries of an agent that does not answer."""


@asynccontextmanager
async def heartbeats(every: float, details: Callable[[], Sequence[Any]] = tuple) -> AsyncIterator[None]:
    """Heartbeats every so many seconds while the block runs, whatever it waits for. ``details`` go along."""

    async def beat() -> None:
        while True:
            activity.heartbeat(*details())
            await asyncio.sleep(every)

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        beating.cancel()


class Patience:
    """Repeats a call to an agent until it answers, or has been out of reach for ``limit`` seconds on end.

    Losing contact is not losing what runs there, so the one place that gives up on an agent is here, and each step
    says after how long. Only time in which somebody tried counts: the silence goes from one attempt of an activity
    to the next with its heartbeats, and the hours in which no worker was there are nobody's fault.
    """

    def __init__(self, limit: float, silence: float = 0.0):
        self.limit = limit
        self._last_contact = time.monotonic() - silence
        self._pause = FIRST_PAUSE

    @classmethod
    def resumed(cls, limit: float) -> Patience:
        """Goes on where the last attempt of this activity stopped waiting."""
        return cls(limit, _silence_so_far(activity.info().heartbeat_details))

    @property
    def silence(self) -> float:
        """Seconds since the last answer."""
        return time.monotonic() - self._last_contact

    @property
    def over(self) -> bool:
        return self.silence >= self.limit

    def details(self) -> list[Any]:
        """For the heartbeats: what the next attempt goes on from."""
        return [self.silence]

    def answered(self) -> None:
        self._last_contact, self._pause = time.monotonic(), FIRST_PAUSE

    async def __call__(self, call: Callable[[], Awaitable[T]]) -> T:
        """
        Raises:
            AgentUnreachable: the limit is over.
        """
        while True:
            try:
                answer = await call()
            except AgentUnreachable as error:
                await self.missed(error)
            else:
                self.answered()
                return answer

    async def missed(self, error: AgentUnreachable) -> None:
        """Waits before the next try, or raises the error again: the limit is over, or the instance is gone."""
        if self.over or isinstance(error, InstanceGone):
            raise error
        await asyncio.sleep(min(self._pause, max(self.limit - self.silence, 0.01)))
        self._pause = min(self._pause * 2, LONGEST_PAUSE)


@dataclass(frozen=True)
class Place:
    """A job as Postgres has it, and the instance it is on."""

    world: World
    job: JobContext
    instance: InstanceRecord

    @classmethod
    async def of(cls, world: World, step: JobStep) -> Place:
        async with world.database.transaction() as tx:
            job = await jobs.load(tx, step.key.job_id)
            instance = await instances.load(tx, step.instance_id)
        return cls(world, job, instance)

    async def shim(self) -> ShimClient:
        return await self.world.agents.shim(await endpoint_of(self.world, self.instance))

    async def runner(self, task: TaskInfo) -> RunnerClient:
        """
        Raises:
            AgentUnreachable: the task has no runner yet, or any more.
        """
        if not task.runner_socket:
            raise AgentUnreachable(f"its task is {task.status.value}: it has no runner")
        endpoint = await endpoint_of(self.world, self.instance)
        return self.world.agents.runner(endpoint, task.runner_socket)

    async def hang_up(self, task: TaskInfo) -> None:
        """Its runner will not be called again."""
        if task.runner_socket:
            await self.world.agents.forget(await endpoint_of(self.world, self.instance), task.runner_socket)


def backend_of(world: World, instance: InstanceRecord) -> Backend:
    """
    Raises:
        ControlPlaneError: this worker is not set up for the instance's backend; another one may be.
    """
    name = instance.offer.backend if instance.offer else instance.backend
    backend = world.backends.get(name)
    if backend is None:
        raise ControlPlaneError(f"this worker has no backend {name!r}", hint="start a worker that is set up for it")
    return backend


async def task_of(shim: ShimClient, task_id: UUID, *, seen: str = "", wait: float = 0) -> TaskInfo | None:
    """The task as the shim has it; None: it knows no such task.

    Raises:
        AgentUnreachable: no answer, or another instance answers in its place.
    """
    try:
        return await shim.task(task_id, seen=seen, wait=wait)
    except AgentRefused as error:
        if error.status == NOT_FOUND:
            return None
        if error.status in NOT_IT:
            raise AgentUnreachable(f"another agent answers in its place: {error.message}") from error
        raise


def gone(error: InstanceGone) -> JobOutcome:
    """Of a job whose instance is gone."""
    reason = JobReason.INTERRUPTED_BY_NO_CAPACITY if error.spot else JobReason.INSTANCE_UNREACHABLE
    return JobOutcome(reason=reason, message=error.message, unreachable=True, instance_gone=True)


def _silence_so_far(details: Sequence[Any]) -> float:
    match list(details):
        case [float() | int() as silence, *_]:
            return float(silence)
        case _:
            return 0.0


async def endpoint_of(world: World, instance: InstanceRecord) -> Endpoint:
    """
    Raises:
        InstanceGone, AgentUnreachable: as ``Backend.endpoint`` says.
        ControlPlaneError: this worker is not set up for the instance's backend.
    """
    try:
        return await backend_of(world, instance).endpoint(instance.purchase, instance.token)
    except InstanceGone as error:
        error.spot = instance.offer is not None and instance.offer.spot
        raise
