"""Rows whose workflow is gone: runs with all they hold, jobs, instances."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from uuid import UUID

from activities.contact import Patience
from activities.placement import offered
from activities.removing import remove
from activities.sweeping.owners import Owners, Standing
from activities.sweeping.rounds import Rounds
from activities.sweeping.together import together
from activities.world import World
from perdure.model.events import JobStop, Nudge
from perdure.model.ids import instance_workflow_id, job_workflow_id
from perdure.model.messages import Finding, InstanceInput, JobEnd, JobKey, JobOutcome, JobStep, RunRecord
from perdure.model.resources import Offer, Requirements
from perdure.model.statuses import JOB_REASONS, RUN_REASONS, JobReason, RunReason
from perdure.store import claims, ends, runs, sweeping
from perdure.store.sweeping import MindedInstance, MindedJob, MindedRun

ABSENT_FOR = 60
"""A workflow that Temporal does not know counts as gone after this many ``sweep_grace`` (an hour): until then it
may be about to start, or to start again after Temporal lost its last moments."""


class RowsLook:
    def __init__(self, world: World, owners: Owners, rounds: Rounds):
        self.world = world
        self.owners = owners
        self.rounds = rounds
        self.grace = world.timing.sweep_grace

    async def runs(self) -> list[Finding]:
        """Runs that are not over, or still hold something, while their workflow is closed."""
        async with self.world.database.transaction() as tx:
            minded = await sweeping.runs(tx)
        return await together(self._run(run) for run in self.rounds.some("runs", minded))

    async def jobs(self) -> list[Finding]:
        """Jobs that have not ended while their own workflow is closed; their runs are told."""
        async with self.world.database.transaction() as tx:
            minded = await sweeping.living_jobs(tx)
        return await together(self._job(job) for job in self.rounds.some("jobs", minded))

    async def instances(self) -> list[Finding]:
        """Instances that are not gone while their workflow is closed, or was never started: it is started again."""
        async with self.world.database.transaction() as tx:
            minded = await sweeping.instances(tx)
        return await together(self._instance(one) for one in self.rounds.some("instances", minded))

    # --- runs -----------------------------------------------------------------------------------------------

    async def _run(self, run: MindedRun) -> list[Finding]:
        standing = await self.owners.standing(run.workflow_id, run.run_id)
        if not (run.superseded or self._gone(standing, run.age)):
            return []
        async with self.world.database.transaction() as tx:
            living = await sweeping.living_jobs(tx, run.run_id)
            held = await sweeping.open_claims(tx, run.run_id)
        found = await together(self._stop(run, job) for job in living)
        nudges: list[Nudge] = []
        for claim_id in held:
            async with self.world.database.transaction() as tx:
                nudges += await claims.withdraw(tx, claim_id, self._offers)
        if living:
            return [*found, *self._released(run, held, nudges)]
        async with self.world.database.transaction() as tx:
            still_open = await sweeping.is_open(tx, run.run_id)
            if still_open:
                await runs.record(tx, _closed(run.run_id, standing))
        if not still_open and not held:
            return []
        message = f"{run.workflow_id} is closed: its run has ended, and all that it held is released"
        return [_finding("closed-owner", run.run_id, message, nudges, settled=True)]

    def _released(self, run: MindedRun, held: Iterable[UUID], nudges: list[Nudge]) -> list[Finding]:
        if not held or not nudges:
            return []
        message = f"{run.workflow_id} is closed: what no job of it uses is released"
        return [_finding("closed-owner", run.run_id, message, nudges, settled=False)]

    async def _stop(self, run: MindedRun, job: MindedJob) -> list[Finding]:
        """The job of a closed run ends too: by its own workflow, if it has one (``jobs`` ends the others)."""
        workflow_id = _workflow_id(job.key)
        if await self.owners.standing(workflow_id) is not Standing.OPEN:
            return []
        stop = JobStop(reason=JobReason.TERMINATED_BY_SERVER, message="the workflow of its run is closed")
        message = f"{run.workflow_id} is closed: {workflow_id} is told to stop"
        nudge = Nudge(workflow_id=workflow_id, news=stop)
        return [_finding("closed-owner", job.key.job_id, message, [nudge], settled=False)]

    # --- jobs -----------------------------------------------------------------------------------------------

    async def _job(self, job: MindedJob) -> list[Finding]:
        workflow_id = _workflow_id(job.key)
        if not self._gone(await self.owners.standing(workflow_id), job.age):
            return []
        async with self.world.database.transaction() as tx:
            if not await sweeping.job_is_living(tx, job.key.job_id):
                return []
        step = JobStep(key=job.key, claim_id=job.claim_id, instance_id=job.instance_id, timing=self.world.timing)
        removed = await remove(self.world, step, Patience(self.world.timing.abort_bound))
        async with self.world.database.transaction() as tx:
            nudges = await ends.end_job(tx, _end(job, removed), self._offers)
        message = f"{workflow_id} is closed: its task is killed and its blocks are released"
        if removed.unreachable:
            message = f"{workflow_id} is closed, and {removed.message}: its blocks are quarantined"
        return [_finding("lost-job", job.key.job_id, message, nudges, settled=True)]

    # --- instances ------------------------------------------------------------------------------------------

    async def _instance(self, instance: MindedInstance) -> list[Finding]:
        workflow_id = instance_workflow_id(instance.instance_id)
        standing = await self.owners.standing(workflow_id)
        if standing is Standing.OPEN or (standing is Standing.ABSENT and instance.age < self.grace):
            return []
        async with self.world.database.transaction() as tx:
            if not await sweeping.instance_is_living(tx, instance.instance_id):
                return []
        again = InstanceInput(
            instance_id=instance.instance_id,
            name=instance.name,
            project=instance.project,
            timing=self.world.timing,
        )
        message = (
            f"{workflow_id} is {standing.value}, and {instance.name} is {instance.status.value}: started again"
        )
        return [
            Finding(
                kind="closed-instance",
                subject=str(instance.instance_id),
                message=message,
                start_instance=again,
                settled=True,
            )
        ]

    def _gone(self, standing: Standing, age: float) -> bool:
        """Closed is a fact; absent is one only after a long time."""
        return standing.over or (standing is Standing.ABSENT and age > ABSENT_FOR * self.grace)

    def _offers(self, requirements: Requirements) -> Iterable[Offer]:
        return offered(self.world, requirements)


def _workflow_id(key: JobKey) -> str:
    return job_workflow_id(key.run_id, key.replica, key.node, key.submission)


def _finding(kind: str, subject: UUID, message: str, nudges: Iterable[Nudge], *, settled: bool) -> Finding:
    return Finding(kind=kind, subject=str(subject), message=message, nudges=tuple(nudges), settled=settled)


def _closed(run_id: UUID, standing: Standing) -> RunRecord:
    """By force is an abort; every other end should have been written by the workflow itself."""
    aborted = standing is Standing.TERMINATED
    reason = RunReason.ABORTED_BY_USER if aborted else RunReason.SERVER_ERROR
    message = "its workflow was terminated in Temporal" if aborted else "its workflow is gone without a word"
    return RunRecord(
        run_id=run_id,
        status=RUN_REASONS[reason].status,
        reason=reason,
        status_message=message,
        at=datetime.now(UTC),
        final=True,
    )


def _end(job: MindedJob, removed: JobOutcome) -> JobEnd:
    reason = JobReason.TERMINATED_BY_SERVER
    return JobEnd(
        key=job.key,
        owner=job.owner,
        claim_id=job.claim_id,
        instance_id=job.instance_id,
        status=JOB_REASONS[reason].status,
        reason=reason,
        message="its workflow was closed without it",
        at=datetime.now(UTC),
        quarantine=removed.unreachable,
        instance_gone=removed.instance_gone,
    )
