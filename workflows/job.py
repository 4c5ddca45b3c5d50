"""One submission of one job, on machines that are ready: a straight line."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from workflows.calls import let_go, start, tell, transact, unbroken

with workflow.unsafe.imports_passed_through():
    from perdure.model import activities as do
    from perdure.model.activities import Activity
    from perdure.model.ends import end_words
    from perdure.model.events import JobReported, JobStop, Nudge
    from perdure.model.messages import JobEnd, JobInput, JobOutcome, JobRecord, JobStep, StopJob
    from perdure.model.names import JOB_WORKFLOW, SIGNAL_TELL
    from perdure.model.statuses import JOB_REASONS, JobReason, JobStatus

FOR_EVER = 10 * 365 * 86400.0


@workflow.defn(name=JOB_WORKFLOW)
class JobWorkflow:
    """Submit the image, start, watch, clean up, say how it ended.

    The end is decided once, by what the runner says; a stop we asked for is never a success. Clean-up follows every
    expected end; only a bug of ours leaves the job running, with this workflow's task retrying.
    """

    @workflow.init
    def __init__(self, job: JobInput) -> None:
        self._job = job
        self._step = JobStep(
            key=job.key,
            claim_id=job.claim_id,
            instance_id=job.instance_id,
            addresses=job.addresses,
            timing=job.timing,
        )
        self._stop: JobStop | None = None

    @workflow.run
    async def run(self, job: JobInput) -> JobOutcome:
        return await unbroken(self._whole(), lambda: self._ask(JobStop(reason=JobReason.TERMINATED_BY_USER)))

    @workflow.signal(name=SIGNAL_TELL)
    def tell(self, news: JobStop) -> None:
        self._ask(news)

    def _ask(self, stop: JobStop) -> None:
        """The first stop's reason counts; a later one can only make it harder."""
        if self._stop is None:
            self._stop = stop
        elif stop.abort and not self._stop.abort:
            self._stop = stop if stop.reason is JobReason.ABORTED_BY_USER else self._stop.but(abort=True)

    async def _whole(self) -> JobOutcome:
        outcome = await self._live()
        outcome = await self._clean_up(outcome)
        assert outcome.reason is not None
        if JOB_REASONS[outcome.reason].status is JobStatus.FAILED:
            words = end_words(outcome.reason, outcome.exit_status, outcome.message)
            raise ApplicationError(words, type=outcome.reason.value, non_retryable=True)
        return outcome

    async def _live(self) -> JobOutcome:
        """Returns for every expected end, stop included; raises only on a bug of ours."""
        job, timing = self._job, self._job.timing
        await self._record(JobStatus.PROVISIONING)
        workflow.set_current_details(f"submitted to instance `{job.instance_id}`")
        outcome = await self._unless_stopped(
            do.SUBMIT_TASK, timing.provisioning + timing.pull, "give the shim the image"
        )
        if outcome.reason is not None:
            return outcome
        outcome = await self._unless_stopped(do.START_JOB, FOR_EVER, "give the runner the job and the code")
        if outcome.reason is not None and self._stop is None:
            return outcome
        telling = asyncio.create_task(self._say_running() if outcome.reason is None else asyncio.sleep(0))
        return await self._watch(telling)

    async def _say_running(self) -> None:
        job = self._job
        workflow.set_current_details(f"**running** since {workflow.now():%Y-%m-%d %H:%M:%S} UTC")
        reported = JobReported(
            run_id=job.key.run_id,
            replica=job.key.replica,
            node=job.key.node,
            submission=job.key.submission,
            status=JobStatus.RUNNING,
            at=workflow.now(),
        )
        await tell([Nudge(workflow_id=job.owner, news=reported)])

    async def _watch(self, telling: asyncio.Task[None]) -> JobOutcome:
        """Wait for the end; on a stop, see it end gently, or leave the rest to the clean-up.

        A stop that came while the runner was being given the job is seen through here too: the runner may have
        started it, and says how it ended.
        """
        timing = self._job.timing
        watch = start(
            do.WATCH_JOB,
            self._step,
            timing,
            limit=FOR_EVER,
            heartbeat=timing.watch_heartbeat,
            summary="watch, and copy the log",
        )
        await telling
        await workflow.wait_condition(lambda: watch.done() or self._stop is not None)
        if not watch.done():
            await self._stop_gently(watch)
        if watch.done():
            return await _answer(watch)
        let_go(watch)
        return self._stopped()

    async def _unless_stopped(self, step: Activity[JobStep, JobOutcome], limit: float, summary: str) -> JobOutcome:
        if self._stop is not None:
            return self._stopped()
        running = start(step, self._step, self._job.timing, limit=limit, summary=summary)
        await workflow.wait_condition(lambda: running.done() or self._stop is not None)
        if running.done():
            return await _answer(running)
        let_go(running)
        return self._stopped()

    def _stopped(self) -> JobOutcome:
        assert self._stop is not None
        return JobOutcome(reason=self._stop.reason, message=self._stop.message)

    async def _stop_gently(self, watch: workflow.ActivityHandle[JobOutcome]) -> None:
        """Ask the runner to end the job, and let the watch see its last line; until its bound, or an abort."""
        assert self._stop is not None
        timing = self._job.timing
        bound = self._job.stop_duration
        stopping: workflow.ActivityHandle[JobOutcome] | None = None
        if not self._stop.abort:
            await self._record(JobStatus.TERMINATING)
            request = StopJob(step=self._step, grace=timing.stop_grace, reason=self._stop.reason)
            stopping = start(
                do.STOP_JOB, request, timing, limit=FOR_EVER, summary=f"stop: {self._stop.reason.value}"
            )
        try:
            await workflow.wait_condition(
                lambda: watch.done() or self._stop is None or self._stop.abort,
                timeout=None if bound is None else timedelta(seconds=bound),
                timeout_summary="stop_duration: then it is killed",
            )
        except TimeoutError:
            workflow.logger.warning("a graceful stop took longer than stop_duration: killing")
        if stopping is not None and not stopping.done():
            let_go(stopping)

    async def _clean_up(self, outcome: JobOutcome) -> JobOutcome:
        """Nothing is left at the agent, the end is written, the block is free, and all who wait have been told."""
        job, timing = self._job, self._job.timing
        assert outcome.reason is not None
        removing = start(
            do.REMOVE_TASK,
            self._step,
            timing,
            limit=timing.abort_bound + 10 * timing.activity,
            summary="drain the log, remove the task",
        )
        removed = await _answer(removing)
        end = JobEnd(
            key=job.key,
            owner=job.owner,
            claim_id=job.claim_id,
            instance_id=job.instance_id,
            status=JOB_REASONS[outcome.reason].status,
            reason=outcome.reason,
            exit_status=outcome.exit_status,
            message=outcome.message,
            at=workflow.now(),
            quarantine=removed.unreachable or removed.reason is JobReason.EXECUTOR_ERROR,
            instance_gone=removed.instance_gone,
        )
        nudges = await transact(do.END_JOB, end, timing, summary=f"end: {outcome.reason.value}")
        words = end_words(outcome.reason, outcome.exit_status, outcome.message)
        workflow.set_current_details(f"**{end.status.value}**: {words}")
        await tell(nudges.nudges)
        return outcome

    async def _record(self, status: JobStatus) -> None:
        job = self._job
        record = JobRecord(
            key=job.key,
            claim_id=job.claim_id,
            instance_id=job.instance_id,
            status=status,
            at=workflow.now(),
        )
        await transact(do.RECORD_JOB, record, job.timing, summary=status.value)


async def _answer(step: workflow.ActivityHandle[JobOutcome]) -> JobOutcome:
    """A step's answer; a clear no that is no outcome of its own is an executor error, and the job is cleaned up."""
    try:
        return await step
    except ActivityError as error:
        return JobOutcome(reason=JobReason.EXECUTOR_ERROR, message=str(error.cause or error))
