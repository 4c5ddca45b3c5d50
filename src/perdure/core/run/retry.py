"""Whether, and when, a failed replica is tried again.

| event | the window begins | reason to stop trying |
| --- | --- | --- |
| no-capacity | at submission, or when the occurrence began; after a submission that ran, at its end | window over |
| error, interruption | at the end of the submission that failed | ``max_attempts`` submissions made |

Which event a job's end is, ``model.statuses.JOB_REASONS`` says. The window is used in full: a pause that would pass
its end is cut, so that the last try is at the end. It is measured by when things happened, not by when the run
heard of them: a worker that was away takes nothing from it. A window of 0 has no room for a retry.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from perdure.core.run.state import Failure, Job, Replica, RunState
from perdure.model.durations import in_words
from perdure.model.ends import end_words
from perdure.model.policy import Retry
from perdure.model.statuses import JOB_REASONS, JobReason, JobStatus, RetryEvent, RunReason


def failed(job: Job) -> bool:
    """Ended, and not well; a scaled-down job is neither."""
    return job.over and job.status is not JobStatus.DONE and job.reason is not JobReason.SCALED_DOWN


def failure_of(state: RunState, job: Job) -> Failure | None:
    """The failure that this job's end is, if ``retry`` covers it."""
    retry, event = state.policy.retry, _event(job)
    if not failed(job) or event is None or not _covers(retry, event) or _spared(retry, job):
        return None
    assert job.ended_at is not None
    return Failure(event=event, at=job.ended_at, message=how_it_ended(job))


def how_it_ended(job: Job) -> str:
    """One sentence: ``node 0 exited with status 3``."""
    return f"node {job.node} {end_words(job.reason, job.exit_status, job.message)}"


def deadline(state: RunState, replica: Replica) -> datetime | None:
    """When waiting for capacity ends; None if the run does not wait."""
    retry = state.policy.retry
    if retry is None or RetryEvent.NO_CAPACITY not in retry.on:
        return None
    return replica.clock + timedelta(seconds=retry.duration)


def refusal(state: RunState, replica: Replica, failure: Failure) -> tuple[RunReason, str] | None:
    """Why this failure is final, as the run's reason and in words; None if it is to be tried again."""
    retry = state.policy.retry
    if retry is None or not _covers(retry, failure.event):
        return RunReason.JOB_FAILED, failure.message
    spent = _spent(state, replica, retry, failure)
    if spent is None:
        return None
    return RunReason.RETRY_LIMIT_EXCEEDED, f"{spent}: {failure.message}" if failure.message else spent


def refusal_of_job(state: RunState, replica: Replica, job: Job) -> tuple[RunReason, str] | None:
    """As ``refusal``, of a job's end."""
    failure = failure_of(state, job)
    if failure is not None:
        return refusal(state, replica, failure)
    if not failed(job):
        return None
    retry, event = state.policy.retry, _event(job)
    spared = event is not None and _covers(retry, event) and _spared(retry, job)
    return RunReason.JOB_FAILED, how_it_ended(job) + (", which retry.on_exit_codes does not name" if spared else "")


def pause(state: RunState, replica: Replica) -> float:
    """The next backoff, in seconds."""
    retry = state.policy.retry
    pauses = (retry.backoff if retry else ()) or state.policy.timing.retry_backoff
    return pauses[min(replica.pauses, len(pauses) - 1)] if pauses else 0.0


def resume_at(state: RunState, replica: Replica, failure: Failure) -> datetime:
    """When to try again: after the backoff, but not after the end of the window."""
    until = failure.at + timedelta(seconds=pause(state, replica))
    retry = state.policy.retry
    if retry is None:
        return until
    end = deadline(state, replica) if failure.event is RetryEvent.NO_CAPACITY else None
    return min(until, end or failure.at + timedelta(seconds=retry.duration))


def _event(job: Job) -> RetryEvent | None:
    return JOB_REASONS[job.reason].retry if job.reason is not None else None


def _covers(retry: Retry | None, event: RetryEvent) -> bool:
    return retry is not None and event in retry.on


def _spared(retry: Retry | None, job: Job) -> bool:
    """It exited by itself, with a status that ``on_exit_codes`` does not name."""
    if retry is None or not retry.on_exit_codes or job.reason is not JobReason.CONTAINER_EXITED_WITH_ERROR:
        return False
    status = job.exit_status
    return status is None or not any(low <= status <= high for low, high in retry.on_exit_codes)


def _spent(state: RunState, replica: Replica, retry: Retry, failure: Failure) -> str | None:
    """What of the run's ``retry`` is used up, in words."""
    if failure.event is RetryEvent.NO_CAPACITY:
        end = deadline(state, replica)
        over = end is not None and failure.at >= end
        return f"the no-capacity window of {in_words(retry.duration)} is over" if over else None
    tries = replica.submission - replica.first + 1
    if retry.max_attempts is not None and tries >= retry.max_attempts:
        return f"gave up after {tries} {'try' if tries == 1 else 'tries'}"
    return "retry.duration is 0" if retry.duration <= 0 else None
