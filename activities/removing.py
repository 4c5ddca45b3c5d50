"""Leaving nothing of a job at its agents: kill what runs, copy the rest of its log, acknowledge, remove."""

from __future__ import annotations

from uuid import UUID

from activities.contact import Patience, Place, task_of
from activities.copying import LogCopy, close_log
from activities.world import World
from perdure.agents.client import RunnerClient, ShimClient
from perdure.agents.protocol import RunnerState, StopBody, TaskInfo, TaskStatus, Terminate
from perdure.model.errors import AgentRefused, AgentUnreachable, InstanceGone
from perdure.model.messages import JobOutcome, JobStep
from perdure.model.statuses import JobReason
from perdure.store import jobs

STATE_WAIT = 5.0
"""Seconds of a long poll for the runner's next state."""

DRAIN_WAIT = 1.0

NOW = Terminate(termination_reason=JobReason.TERMINATED_BY_SERVER, timeout=0)

CHANGED_MEANWHILE = (404, 409)
"""Removed by somebody else; not terminated after all. Look again."""

HAS_RUNNER = (TaskStatus.RUNNING, TaskStatus.TERMINATED)
"""A terminated task keeps its runner, with the end of its log, until it is removed."""


async def remove(world: World, step: JobStep, patience: Patience) -> JobOutcome:
    """``unreachable`` if the agent did not answer within the patience, or would not: then nobody knows that nothing
    is left. The log is complete in every case."""
    place = await Place.of(world, step)
    removal = _Removal(world, step, place, patience)
    try:
        await removal.carry_out()
    except InstanceGone as error:
        await close_log(world, step.key.job_id, removal.copy.missing, "its host is gone")
        return JobOutcome(message=error.message, unreachable=True, instance_gone=True)
    except (AgentUnreachable, AgentRefused) as error:
        await close_log(world, step.key.job_id, removal.copy.missing, "its host could not be reached")
        return JobOutcome(message=f"its host could not be asked: {error.message}", unreachable=True)
    return JobOutcome()


async def forget(shim: ShimClient, task_id: UUID, patience: Patience) -> None:
    """Terminate and remove it, also one that the shim does not know: it then takes none of this id any more. A call
    of ours that brings it, and that a stop made us give up, may still be under way.

    Raises:
        AgentUnreachable, AgentRefused
    """
    while True:
        task = await patience(lambda: task_of(shim, task_id))
        try:
            if task is not None and task.status is not TaskStatus.TERMINATED:
                await patience(lambda: shim.terminate(task_id, NOW))
            return await patience(lambda: shim.remove(task_id))
        except AgentRefused as error:
            if error.status not in CHANGED_MEANWHILE:
                raise


class _Removal:
    def __init__(self, world: World, step: JobStep, place: Place, patience: Patience):
        self.world = world
        self.job_id = step.key.job_id
        self.place = place
        self.patience = patience
        self.copy = LogCopy(world, self.job_id, place.job.log_bytes)
        self.drained = place.job.log_complete

    async def carry_out(self) -> None:
        shim = await self.patience(self.place.shim)
        task = await self.patience(lambda: task_of(shim, self.job_id))
        if task is not None:
            await self._drain(shim, task)
        await forget(shim, self.job_id, self.patience)
        if task is not None:
            await self.place.hang_up(task)
        if not self.drained:
            await close_log(self.world, self.job_id, self.copy.missing, "its host lost it")

    async def _drain(self, shim: ShimClient, task: TaskInfo | None) -> None:
        """Kill what still runs, copy the rest of the log and acknowledge the result; nothing, if its runner is gone
        for good: the shim says so, or starts it again in vain."""
        waiting = Patience(self.patience.limit)
        while task is not None and task.status in HAS_RUNNER and task.runner_socket:
            try:
                return await self._drain_runner(await self.place.runner(task), waiting)
            except AgentRefused:
                return None
            except AgentUnreachable as error:
                if waiting.over:
                    return None
                await waiting.missed(error)
            task = await self.patience(lambda: task_of(shim, self.job_id))
        return None

    async def _drain_runner(self, runner: RunnerClient, waiting: Patience) -> None:
        state = await runner.stop(StopBody(grace=0))
        while state.state is not RunnerState.ENDED:
            state = await runner.state(wait=STATE_WAIT, seen=state.state)
            waiting.answered()
        if not self.drained:
            async with self.world.database.transaction() as tx:
                self.copy.resume((await jobs.load(tx, self.job_id)).log_bytes)
            while not await self.copy.page(runner, DRAIN_WAIT):
                waiting.answered()
            self.drained = True
        await runner.ack()
