"""Whether, and when, a failed replica is tried again.

| event | the window begins | reason to stop trying |
| --- | --- | --- |
| no-capacity | at submission; after a submission that ran, at its end | window over |
| error, interruption | at the end of the submission that failed | ``max_attempts`` submissions made |

The window is used in full: a pause that would pass its end is cut, so that the last try is at the end.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from perdure.core.run.state import Job, Replica, RunState
from perdure.model.durations import in_words
from perdure.model.statuses import JOB_REASONS, JobReason, JobStatus, RetryEvent, RunReason


def covered(state: RunState, event: RetryEvent | None) -> bool:
    """Whether the run's ``retry`` covers this event."""
    retry = state.policy.retry
    return retry is not None and event is not None and event in retry.on


def event_of(job: Job) -> RetryEvent | None:
    """What kind of failure a job's end is, for ``retry``."""
    return JOB_REASONS[job.reason].retry if job.reason is not None else None


def failed(job: Job) -> bool:
    """Ended, and not well; a scaled-down job is neither."""
    return job.over and job.status is not JobStatus.DONE and job.reason is not JobReason.SCALED_DOWN


def deadline(state: RunState, replica: Replica) -> datetime | None:
    """When waiting for capacity ends; None if the run does not wait."""
    retry = state.policy.retry
    if retry is None or RetryEvent.NO_CAPACITY not in retry.on:
        return None
    return replica.clock + timedelta(seconds=retry.duration)


def refusal(state: RunState, replica: Replica, event: RetryEvent | None, now: datetime) -> RunReason | None:
    """Why this failure is final; None if it is to be tried again."""
    retry = state.policy.retry
    if retry is None or not covered(state, event):
        return RunReason.JOB_FAILED
    if event is RetryEvent.NO_CAPACITY:
        end = deadline(state, replica)
        return RunReason.RETRY_LIMIT_EXCEEDED if end is not None and now >= end else None
    if retry.max_attempts is not None and replica.submission + 1 >= retry.max_attempts:
        return RunReason.RETRY_LIMIT_EXCEEDED
    return None


def gave_up(state: RunState, replica: Replica, event: RetryEvent | None, message: str) -> str:
    """How a failure that is final ends the run, in words: also what of its ``retry`` is used up."""
    retry = state.policy.retry
    if retry is None or not covered(state, event):
        return message
    if event is RetryEvent.NO_CAPACITY:
        spent = f"the no-capacity window of {in_words(retry.duration)} is over"
    else:
        spent = f"gave up after {replica.submission + 1} tries"
    return f"{spent}: {message}" if message else spent


def pause(state: RunState, replica: Replica) -> float:
    """The next backoff, in seconds."""
    pauses = state.policy.timing.retry_backoff
    return pauses[min(replica.pauses, len(pauses) - 1)] if pauses else 0.0


def resume_at(state: RunState, replica: Replica, failed_at: datetime, event: RetryEvent) -> datetime:
    """When to try again: after the backoff, but not after the end of the window."""
    until = failed_at + timedelta(seconds=pause(state, replica))
    retry = state.policy.retry
    if retry is None:
        return until
    end = deadline(state, replica) if event is RetryEvent.NO_CAPACITY else None
    return min(until, end or failed_at + timedelta(seconds=retry.duration))
