"""The workflows of jobs and their agents, in their simplest true form: jobs start, run, are stopped, end once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from perdure.core import run as core
from perdure.core.run import state as happened
from perdure.model.events import JobEnded, JobReported
from perdure.model.ids import job_id
from perdure.model.statuses import JOB_REASONS, ClaimStatus, JobReason, JobStatus

if TYPE_CHECKING:
    from tests.core.world import Claim, World

TOLD_AGAIN = 90.0
"""Seconds after which the sweep tells again of an end that the run has not said it knows."""

FAILURES = (
    JobReason.CONTAINER_EXITED_WITH_ERROR,
    JobReason.CONTAINER_EXITED_WITH_ERROR,
    JobReason.EXECUTOR_ERROR,
    JobReason.INTERRUPTED_BY_NO_CAPACITY,
    JobReason.MAX_DURATION_EXCEEDED,
)


@dataclass(slots=True)
class Job:
    """A job's workflow. ``due``: when it ends by itself; ``result``: how."""

    id: UUID
    replica: int
    node: int
    submission: int
    claim: Claim
    result: JobReason
    due: datetime
    deaf: bool
    status: JobStatus = JobStatus.PROVISIONING
    stop: core.StopJob | None = None
    end: JobEnded | None = None
    heard: bool = False


class Agents:
    def __init__(self, world: World):
        self.world = world

    def start(self, command: core.StartJob) -> None:
        key = (command.replica, command.node, command.submission)
        known: tuple[JobReported | JobEnded, ...] = ()
        if key in self.world.jobs:
            known = self.known(command.replica, command.submission)
        else:
            self._begin(command, self.world.claims[command.claim_id])
        self.world.answer(
            happened.Started(
                replica=command.replica,
                node=command.node,
                submission=command.submission,
                key=command.key,
                known=known,
            )
        )

    def _begin(self, command: core.StartJob, claim: Claim) -> None:
        result = JobReason.DONE_BY_RUNNER
        if self.world.chance("fail", self.world.chances.failure):
            result = self.world.random.choice(FAILURES)
        elif self.world.chance("unreachable", 0.05) or command.node not in claim.places:
            result = JobReason.INSTANCE_UNREACHABLE
        seconds = int(self.world.random.random() * 2 * self.world.chances.run_seconds) / 2
        deaf = self.world.chance("deaf", 0.2)
        job = Job(
            job_id(self.world.policy.run_id, command.replica, command.node, command.submission),
            command.replica,
            command.node,
            command.submission,
            claim,
            result,
            self.world.now + timedelta(seconds=seconds),
            deaf,
        )
        self.world.jobs[(job.replica, job.node, job.submission)] = job
        if self.world.random.random() < 0.9:
            self.world.after(min(seconds, self.world.latency()), lambda: self._runs(job))
        self.world.after(seconds, lambda: self.end(job))

    def _runs(self, job: Job) -> None:
        if job.end is None and job.stop is None:
            job.status = JobStatus.RUNNING
            self.world.news(self._report(job))

    def stop(self, command: core.StopJob) -> None:
        job = self.world.jobs[(command.replica, command.node, command.submission)]
        self.world.answer(happened.Stopped(key=command.key))
        if job.end is not None:
            return
        job.stop = job.stop if job.stop and job.stop.reason is not JobReason.TERMINATED_BY_USER else command
        grace = self.world.policy.timing.abort_bound
        if not command.abort:
            stop_duration = self.world.policy.stop_duration
            grace = self.world.random.random() * 10 if not job.deaf or stop_duration is None else stop_duration
        self.world.after(grace, lambda: self.end(job))

    def end(self, job: Job) -> None:
        """The first end counts. One that was asked to stop before it was due has not ended by itself."""
        if job.end is not None:
            return
        reason = job.stop.reason if job.stop else job.result
        rule = JOB_REASONS[reason]
        exited = reason in (JobReason.DONE_BY_RUNNER, JobReason.CONTAINER_EXITED_WITH_ERROR)
        job.status = rule.status
        job.claim.places.pop(job.node, None)
        if not job.claim.places and job.claim.status.holds:
            job.claim.status = ClaimStatus.RELEASED
        job.end = JobEnded(
            run_id=self.world.policy.run_id,
            replica=job.replica,
            node=job.node,
            submission=job.submission,
            status=rule.status,
            reason=reason,
            exit_status=(0 if reason is JobReason.DONE_BY_RUNNER else self.world.random.choice((1, 2)))
            if exited
            else None,
            at=self.world.now,
        )
        self.world.news(job.end)
        self.world.after(TOLD_AGAIN, lambda: self._tell_again(job))

    def _tell_again(self, job: Job) -> None:
        """The sweep, of an end that the run has not said it knows."""
        if job.end is not None and not job.heard:
            self.world.inbox.append(job.end)
            self.world.after(TOLD_AGAIN, lambda: self._tell_again(job))

    def known(
        self, replica: int, submission: int, claim: Claim | None = None
    ) -> tuple[JobReported | JobEnded, ...]:
        """What Postgres knows of a submission's jobs."""
        jobs = [job for key, job in self.world.jobs.items() if (key[0], key[2]) == (replica, submission)]
        jobs = [job for job in jobs if claim is None or job.claim is claim]
        return tuple(job.end or self._report(job) for job in jobs)

    def _report(self, job: Job) -> JobReported:
        return JobReported(
            run_id=self.world.policy.run_id,
            replica=job.replica,
            node=job.node,
            submission=job.submission,
            status=job.status,
            at=self.world.now,
        )
