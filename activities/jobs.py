"""Bringing one job up at its agents: the shim gets the task, the runner gets the job and the code."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

from temporalio import activity

from activities.contact import Patience, Place, gone, heartbeats, task_of
from activities.errors import translated
from activities.opening import opened
from activities.requests import outcome_of_state, outcome_of_task, ports_of, submit_body, task_config
from activities.world import World
from perdure.agents.client import RunnerClient, ShimClient
from perdure.agents.protocol import RunAnswer, RunnerState, TaskInfo, TaskStatus
from perdure.model.activities import START_JOB, SUBMIT_TASK
from perdure.model.errors import (
    AgentRefused,
    AgentUnreachable,
    CannotOpen,
    InstanceGone,
    NotFound,
    UserError,
)
from perdure.model.messages import CodeRef, JobOutcome, JobStep
from perdure.model.statuses import JobReason, JobStatus
from perdure.store import jobs

BEFORE_RUNNING = (JobStatus.SUBMITTED, JobStatus.PROVISIONING, JobStatus.PULLING)

TASK_WAIT = 1.0
"""Seconds of a long poll for a task's next status: also how often pull progress is read."""

PULL_SHOWN_EVERY = 1.0

NEVER_RAN = RunAnswer()
"""A runner's answer about a job that ended before it ran; any other has a user's name."""

LOST = JobOutcome(
    reason=JobReason.EXECUTOR_ERROR,
    message="its host no longer knows this job, which was given to it before: it lost its state",
)
"""The one answer to a task that has vanished. Never a second start: the first may have done its work."""


class Starting:
    def __init__(self, world: World):
        self.world = world

    @activity.defn(name=SUBMIT_TASK.name)
    @translated
    async def submit_task(self, step: JobStep) -> JobOutcome:
        """Give the task to the shim and wait until its runner is up: pulling may take long.

        Safe to repeat: a task that the shim knows is waited for, whatever made it.
        """
        patience = Patience.resumed(step.timing.provisioning)
        async with heartbeats(step.timing.heartbeat / 3, patience.details):
            try:
                return await self._submit(step, patience)
            except AgentUnreachable as error:
                return _gave_up(error, patience)
            except CannotOpen as error:
                return _cannot_be_right(error)
            except (AgentRefused, UserError) as error:
                return JobOutcome(reason=JobReason.EXECUTOR_ERROR, message=error.message)

    async def _submit(self, step: JobStep, patience: Patience) -> JobOutcome:
        place = await Place.of(self.world, step)
        shim = await patience(place.shim)
        task = await patience(lambda: task_of(shim, step.key.job_id))
        if task is None:
            if place.job.status not in BEFORE_RUNNING:
                return LOST
            config = task_config(step, place.job, place.instance, await opened(self.world, place.job.effective))
            task = await patience(lambda: shim.submit_task(config))
        if place.job.effective.image and task.status is not TaskStatus.RUNNING:
            async with self.world.database.transaction() as tx:
                await jobs.set_status(tx, step.key.job_id, JobStatus.PULLING, expected=BEFORE_RUNNING)
        task = await self._until_up(step, shim, task, patience)
        if task is None:
            return LOST
        return JobOutcome() if task.status is TaskStatus.RUNNING else outcome_of_task(task)

    async def _until_up(
        self, step: JobStep, shim: ShimClient, task: TaskInfo | None, patience: Patience
    ) -> TaskInfo | None:
        """The task once it runs or is over; None if the shim forgot it."""
        shown, shown_at = (0, 0), 0.0
        while task is not None and task.status not in (TaskStatus.RUNNING, TaskStatus.TERMINATED):
            pull = task.image_pull_progress
            if pull and time.monotonic() - shown_at >= PULL_SHOWN_EVERY:
                now = (pull.downloaded_bytes, pull.total_bytes)
                if now != shown:
                    async with self.world.database.transaction() as tx:
                        await jobs.set_pull(tx, step.key.job_id, *now)
                shown, shown_at = now, time.monotonic()
            task = await patience(partial(task_of, shim, step.key.job_id, seen=task.status, wait=TASK_WAIT))
        return task

    @activity.defn(name=START_JOB.name)
    @translated
    async def start_job(self, step: JobStep) -> JobOutcome:
        """Give the runner the job and its code, and run it; then the job is RUNNING, or has ended before it ran.

        Safe to repeat, and never starts a job twice: the runner answers a second ``run`` as it did the first, and
        a task that the shim does not know is not made again here.
        """
        patience = Patience.resumed(step.timing.provisioning)
        async with heartbeats(step.timing.heartbeat / 3, patience.details):
            try:
                return await self._start(step, patience)
            except AgentUnreachable as error:
                return _gave_up(error, patience)
            except CannotOpen as error:
                return _cannot_be_right(error)
            except (AgentRefused, NotFound, UserError) as error:
                return JobOutcome(reason=JobReason.EXECUTOR_ERROR, message=error.message)

    async def _start(self, step: JobStep, patience: Patience) -> JobOutcome:
        place = await Place.of(self.world, step)
        shim = await patience(place.shim)
        task = await patience(lambda: task_of(shim, step.key.job_id))
        task = await self._until_up(step, shim, task, patience)
        if task is None:
            return LOST
        if task.status is TaskStatus.TERMINATED:
            return outcome_of_task(task)
        runner = await place.runner(task)
        if (await patience(runner.state)).state in (RunnerState.WAIT_SUBMIT, RunnerState.WAIT_RUN):
            values = await opened(self.world, place.job.effective)
            body = submit_body(step, place.job, place.instance, values)
            await patience(lambda: runner.submit(body))
            await self._upload(runner, place.job.effective.code, patience)
        answer = await patience(runner.run)
        if answer == NEVER_RAN:
            return outcome_of_state(await patience(runner.state))
        async with self.world.database.transaction() as tx:
            await jobs.set_started(
                tx, step.key.job_id, answer.working_dir, answer.username, ports_of(place.job, task)
            )
            await jobs.set_status(tx, step.key.job_id, JobStatus.RUNNING, expected=BEFORE_RUNNING)
        return JobOutcome()

    async def _upload(self, runner: RunnerClient, code: Sequence[CodeRef], patience: Patience) -> None:
        """Each archive once, however many paths it is unpacked at."""
        for sha256 in dict.fromkeys(part.sha256 for part in code):

            async def upload(sha256: str = sha256) -> None:
                await runner.upload_archive(sha256, self.world.blobs.read_code(sha256))

            await patience(upload)


def _cannot_be_right(error: CannotOpen) -> JobOutcome:
    """The job cannot be given its values, and another try would not be: no reason that ``retry`` covers."""
    return JobOutcome(reason=JobReason.TERMINATED_BY_SERVER, message=error.message)


def _gave_up(error: AgentUnreachable, patience: Patience) -> JobOutcome:
    if isinstance(error, InstanceGone):
        return gone(error)
    return JobOutcome(
        reason=JobReason.WAITING_RUNNER_LIMIT_EXCEEDED,
        message=f"its host did not answer for {patience.silence:.0f} s: {error.message}",
        unreachable=True,
    )
