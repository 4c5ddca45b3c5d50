"""Watching one running job: its output as it comes, and how it ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from temporalio import activity

from activities.contact import Patience, Place, gone, heartbeats, task_of
from activities.copying import LogCopy
from activities.errors import translated
from activities.jobs import LOST
from activities.requests import outcome_of_state, outcome_of_task
from activities.world import World
from perdure.agents.client import RunnerClient
from perdure.agents.protocol import RunnerState, TaskStatus
from perdure.model.activities import WATCH_JOB
from perdure.model.errors import AgentRefused, AgentUnreachable, InstanceGone
from perdure.model.messages import JobOutcome, JobStep
from perdure.model.statuses import JobReason
from perdure.store import jobs

LOG_WAIT = 30.0
"""Seconds of one long poll for a running job's next output, the most that agents grant: a quiet job costs two calls
a minute."""


FORGOTTEN = JobOutcome(reason=JobReason.EXECUTOR_ERROR, message="its runner forgot the job that it was running")


class Watching:
    def __init__(self, world: World):
        self.world = world

    @activity.defn(name=WATCH_JOB.name)
    @translated
    async def watch_job(self, step: JobStep) -> JobOutcome:
        """Copy the job's output until it has ended and all of it is stored; then say how it ended.

        Losing contact is not losing the job: only after ``timing.contact_lost`` seconds of silence, counted across
        workers, is it ``instance_unreachable``. Safe to repeat: the offset of record is in Postgres.
        """
        watch = _Watch(self.world, step)
        async with (
            heartbeats(step.timing.watch_heartbeat / 3, watch.details),
            _enlisted(self.world, step),
        ):
            return await watch.until_ended()


class _Watch:
    def __init__(self, world: World, step: JobStep):
        self.world = world
        self.step = step
        self.patience = Patience.resumed(step.timing.contact_lost)
        self.copy = LogCopy(world, step.key.job_id, 0)
        self.host_answers = False
        """The shim answered the last time it was asked, whatever its runner does."""

    def details(self) -> list[Any]:
        """The silence so far, and, for people, the offset."""
        return [*self.patience.details(), self.copy.written]

    async def until_ended(self) -> JobOutcome:
        while True:
            try:
                return await self._look_and_follow()
            except AgentUnreachable as error:
                try:
                    await self.patience.missed(error)
                except AgentUnreachable:
                    return self._out_of_reach(error)

    async def _look_and_follow(self) -> JobOutcome:
        """Find the job's runner by way of its shim, which starts a dead one again, and follow it to the end.

        Raises:
            AgentUnreachable
        """
        self.host_answers = False
        place = await Place.of(self.world, self.step)
        self.copy.resume(place.job.log_bytes)
        task = await task_of(await place.shim(), self.step.key.job_id)
        self.host_answers = True
        if task is None:
            return LOST
        try:
            return await self._follow(await place.runner(task), drained=place.job.log_complete)
        except AgentUnreachable:
            if task.status is TaskStatus.TERMINATED:
                return outcome_of_task(task)
            raise
        except AgentRefused as error:
            return JobOutcome(reason=JobReason.EXECUTOR_ERROR, message=error.message)

    async def _follow(self, runner: RunnerClient, *, drained: bool) -> JobOutcome:
        """
        Raises:
            AgentUnreachable: the runner stopped answering.
        """
        while not drained:
            drained = await self.copy.page(runner, LOG_WAIT)
            self.patience.answered()
            if self.copy.state not in (RunnerState.RUNNING, RunnerState.ENDED):
                return FORGOTTEN
        return outcome_of_state(await runner.state())

    def _out_of_reach(self, error: AgentUnreachable) -> JobOutcome:
        if isinstance(error, InstanceGone):
            return gone(error)
        silence = f"did not answer for {self.patience.silence:.0f} s: {error.message}"
        if self.host_answers:
            return JobOutcome(reason=JobReason.EXECUTOR_ERROR, message=f"its runner {silence}")
        return JobOutcome(reason=JobReason.INSTANCE_UNREACHABLE, message=f"its host {silence}", unreachable=True)


@asynccontextmanager
async def _enlisted(world: World, step: JobStep) -> AsyncIterator[None]:
    """The watch's task token is in Postgres while it runs, for the worker that comes after this one."""
    async with world.database.transaction() as tx:
        await jobs.put_watch(tx, step.key.job_id, world.worker, world.incarnation, activity.info().task_token)
    try:
        yield
    finally:
        async with world.database.transaction() as tx:
            await jobs.drop_watch(tx, step.key.job_id, world.incarnation)
