"""Taking one job down at its agents: the whole tree is stopped, the log drained, the task removed."""

from __future__ import annotations

import asyncio

from temporalio import activity

from activities.contact import Patience, Place, heartbeats, task_of
from activities.errors import translated
from activities.removing import HAS_RUNNER, STATE_WAIT, remove
from activities.requests import outcome_of_state, outcome_of_task
from activities.world import World
from perdure.agents.client import RunnerClient
from perdure.agents.protocol import JobState, RunnerState, StopBody, TaskStatus
from perdure.model.activities import REMOVE_TASK, STOP_JOB
from perdure.model.errors import AgentRefused, AgentUnreachable
from perdure.model.messages import JobOutcome, JobStep, StopJob


class Stopping:
    def __init__(self, world: World):
        self.world = world

    @activity.defn(name=STOP_JOB.name)
    @translated
    async def stop_job(self, stop: StopJob) -> JobOutcome:
        """Stop the job's whole tree, and say how it really ended.

        A job that had ended before the stop reached it ended its own way; every other end is ``stop.reason``,
        whatever its exit status. Safe to repeat. Bounded: the grace, then ``timing.abort_bound``.
        """
        patience = Patience.resumed(stop.step.timing.abort_bound)
        async with heartbeats(stop.step.timing.heartbeat / 3, patience.details):
            try:
                async with asyncio.timeout(stop.grace + stop.step.timing.abort_bound):
                    return await self._stop(stop, patience)
            except AgentUnreachable as error:
                return JobOutcome(
                    reason=stop.reason, message=f"its host did not answer: {error.message}", unreachable=True
                )
            except AgentRefused as error:
                return JobOutcome(reason=stop.reason, message=error.message)
            except TimeoutError:
                return JobOutcome(reason=stop.reason, message="its processes were still ending when it was removed")

    async def _stop(self, stop: StopJob, patience: Patience) -> JobOutcome:
        place = await Place.of(self.world, stop.step)
        shim = await patience(place.shim)
        while True:
            task = await patience(lambda: task_of(shim, stop.step.key.job_id))
            if task is None:
                return JobOutcome(reason=stop.reason)
            if task.status not in HAS_RUNNER:
                return JobOutcome(reason=stop.reason, message="it had not started yet")
            try:
                return outcome_of_state(await _stopped(await place.runner(task), stop))
            except AgentUnreachable as error:
                if task.status is TaskStatus.TERMINATED:
                    return outcome_of_task(task)
                await patience.missed(error)

    @activity.defn(name=REMOVE_TASK.name)
    @translated
    async def remove_task(self, step: JobStep) -> JobOutcome:
        """Leave nothing at the agents, and nothing of the log behind. Safe to repeat; an unknown task is success.

        ``unreachable``: the agent was silent for ``timing.abort_bound``. The log is complete then all the same: its
        last line says what is missing.
        """
        patience = Patience.resumed(step.timing.abort_bound)
        async with heartbeats(step.timing.heartbeat / 3, patience.details):
            return await remove(self.world, step, patience)


async def _stopped(runner: RunnerClient, stop: StopJob) -> JobState:
    """The runner's state once its job has ended."""
    state = await runner.stop(StopBody(grace=stop.grace, reason=stop.reason))
    while state.state is not RunnerState.ENDED:
        state = await runner.state(wait=STATE_WAIT, seen=state.state)
    return state
