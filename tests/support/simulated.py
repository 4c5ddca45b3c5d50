"""Agents and a provider that live in this process: what a workflow sees is the same, and tests say what happens.

Jobs are known by ``job_id``, as on a real shim, and the same rules hold: submitting twice is once, a removed
task never runs again, the first end counts. Each job's ``Script`` says how it goes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from temporalio import activity

from perdure.model import activities as do
from perdure.model.messages import (
    Created,
    Findings,
    InstanceRef,
    JobOutcome,
    JobStep,
    Nothing,
    Reached,
    StopJob,
    Termination,
)
from perdure.model.resources import Offer, OfferFailure, Resources
from perdure.model.statuses import JobReason

OFFER = Offer(
    backend="local",
    region="local",
    instance_type="sim",
    resources=Resources(cpus=8, memory_mib=65536, disk_mib=500 * 1024),
    executors=("process", "docker"),
)


@dataclass
class Script:
    """How one job goes. ``seconds`` None: until it is stopped. ``heeds``: it ends when asked to."""

    seconds: float | None = 0.0
    exit_status: int = 0
    heeds: bool = True
    submit_seconds: float = 0.0
    refuses: JobReason | None = None


@dataclass
class SimulatedJob:
    script: Script
    runs: int = 0
    removed: bool = False
    outcome: JobOutcome | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    stop: JobReason | None = None

    def end(self, outcome: JobOutcome) -> None:
        if self.outcome is None:
            self.outcome = outcome
            self.changed.set()


@dataclass
class SimulatedHosts:
    """All hosts at once. ``script`` is asked for each job, by (replica, node, submission)."""

    script: Callable[[int, int, int], Script] = lambda replica, node, submission: Script()
    create_fails: Callable[[UUID], str | None] = lambda instance: None
    instances: set[UUID] = field(default_factory=set)
    jobs: dict[UUID, SimulatedJob] = field(default_factory=dict)
    keys: dict[UUID, tuple[int, int, int]] = field(default_factory=dict)
    unreachable: set[UUID] = field(default_factory=set)
    _timers: set[asyncio.Task[None]] = field(default_factory=set)

    def activities(self) -> list[Callable[..., object]]:
        provider = [self.create_instance, self.reach_instance, self.terminate_instance, self.sweep]
        return [*provider, *self.job_activities()]

    def job_activities(self) -> list[Callable[..., object]]:
        """Those of the agents alone: the provider is another one."""
        return [self.submit_task, self.start_job, self.watch_job, self.stop_job, self.remove_task]

    # --- the provider ---------------------------------------------------------------------------------------------

    @activity.defn(name=do.CREATE_INSTANCE.name)
    async def create_instance(self, ref: InstanceRef) -> Created:
        why = self.create_fails(ref.instance_id)
        if why is not None:
            return Created(tried=(OfferFailure(offer="local sim", why=why),))
        self.instances.add(ref.instance_id)
        return Created(offer=OFFER)

    @activity.defn(name=do.REACH_INSTANCE.name)
    async def reach_instance(self, ref: InstanceRef) -> Reached:
        return Reached(address="127.0.0.1")

    @activity.defn(name=do.TERMINATE_INSTANCE.name)
    async def terminate_instance(self, ref: InstanceRef) -> Termination:
        self.instances.discard(ref.instance_id)
        return Termination(gone=True)

    # --- the agents -----------------------------------------------------------------------------------------------

    def _job(self, step: JobStep) -> SimulatedJob:
        key = (step.key.replica, step.key.node, step.key.submission)
        self.keys[step.key.job_id] = key
        return self.jobs.setdefault(step.key.job_id, SimulatedJob(self.script(*key)))

    @activity.defn(name=do.SUBMIT_TASK.name)
    async def submit_task(self, step: JobStep) -> JobOutcome:
        job = self._job(step)
        await self._pass(job.script.submit_seconds)
        if job.script.refuses is not None:
            return JobOutcome(reason=job.script.refuses, message="refused by the script")
        return JobOutcome()

    @activity.defn(name=do.START_JOB.name)
    async def start_job(self, step: JobStep) -> JobOutcome:
        job = self._job(step)
        if job.removed or job.runs or job.stop is not None:
            return JobOutcome()
        job.runs += 1
        if job.script.seconds is not None:
            task = asyncio.create_task(self._finish(job, job.script.seconds))
            self._timers.add(task)
            task.add_done_callback(self._timers.discard)
        return JobOutcome()

    async def _finish(self, job: SimulatedJob, seconds: float) -> None:
        await asyncio.sleep(seconds)
        status = job.script.exit_status
        reason = JobReason.DONE_BY_RUNNER if status == 0 else JobReason.CONTAINER_EXITED_WITH_ERROR
        job.end(JobOutcome(reason=reason, exit_status=status))

    @activity.defn(name=do.WATCH_JOB.name)
    async def watch_job(self, step: JobStep) -> JobOutcome:
        job = self._job(step)
        while job.outcome is None:
            if step.instance_id in self.unreachable:
                return JobOutcome(reason=JobReason.INSTANCE_UNREACHABLE, unreachable=True)
            activity.heartbeat()
            try:
                await asyncio.wait_for(job.changed.wait(), 0.2)
            except TimeoutError:
                continue
        return job.outcome

    @activity.defn(name=do.STOP_JOB.name)
    async def stop_job(self, request: StopJob) -> JobOutcome:
        job = self._job(request.step)
        job.stop = request.reason
        if job.script.heeds:
            job.end(JobOutcome(reason=request.reason, exit_status=143))
        return job.outcome or JobOutcome()

    @activity.defn(name=do.REMOVE_TASK.name)
    async def remove_task(self, step: JobStep) -> JobOutcome:
        job = self._job(step)
        job.removed = True
        job.end(JobOutcome(reason=JobReason.ABORTED_BY_USER, exit_status=137))
        return JobOutcome(unreachable=step.instance_id in self.unreachable)

    @activity.defn(name=do.SWEEP.name)
    async def sweep(self, nothing: Nothing) -> Findings:
        return Findings()

    async def _pass(self, seconds: float) -> None:
        deadline = asyncio.get_running_loop().time() + seconds
        while (left := deadline - asyncio.get_running_loop().time()) > 0:
            activity.heartbeat()
            await asyncio.sleep(min(left, 0.2))

    # --- for the checks -------------------------------------------------------------------------------------------

    def runs(self) -> dict[tuple[int, int, int], int]:
        """How often each job was really started."""
        return {self.keys[job_id]: job.runs for job_id, job in self.jobs.items()}

    def assert_quiet(self) -> None:
        """Nothing runs, and nothing ran twice."""
        assert all(job.removed for job in self.jobs.values()), "a task was left on its host"
        assert all(job.runs <= 1 for job in self.jobs.values()), "a job ran twice"
