"""How the jobs of one submission ran and ended, line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from perdure.core.story.facts import Job
from perdure.core.story.words import clause, every, lasting, listed, sentence
from perdure.model.api import StoryLine
from perdure.model.durations import duration
from perdure.model.ends import end_words
from perdure.model.statuses import JOB_REASONS, Fault, JobStatus

SOON = 1.0
"""Seconds that are not worth a line."""

FAULTS = {
    Fault.PROVIDER: "its instance's fault, not its own",
    Fault.AGENT: "its host's fault, not its own",
    Fault.OURS: "Perdure's fault",
}
"""What is worth saying of a failure; of the user's own, the end itself says it."""


def lines_of_jobs(jobs: Sequence[Job]) -> Iterator[StoryLine]:
    """How they came to run, and how each ended."""
    if not jobs:
        return
    pulled = [job for job in jobs if _pulled(job) >= SOON]
    if pulled:
        slowest = max(pulled, key=_pulled)
        at = slowest.moved.get(JobStatus.RUNNING)
        who = "Pulling its image" if len(jobs) == 1 else f"Pulling the image, at the slowest of {len(jobs)} nodes,"
        yield StoryLine(at=at, text=f"{who} took {_pulled(slowest):.0f} s.")
    started = [job for job in jobs if job.started_at is not None]
    if started:
        yield _started(jobs, started)
    yield from _ends(jobs)


def _pulled(job: Job) -> float:
    begin, end = job.moved.get(JobStatus.PULLING), job.moved.get(JobStatus.RUNNING)
    return (end - begin).total_seconds() if begin is not None and end is not None else 0.0


def _started(jobs: Sequence[Job], started: Sequence[Job]) -> StoryLine:
    last = max(job.started_at for job in started if job.started_at is not None)
    took = lasting(min(job.submitted_at for job in jobs), last)
    if len(jobs) == 1:
        return StoryLine(at=last, text=f"It began to run on {jobs[0].instance}, {took} after it was sent there.")
    who = every(len(jobs), "nodes") if len(started) == len(jobs) else f"{len(started)} of {len(jobs)} nodes"
    where = listed([job.instance for job in started])
    return StoryLine(at=last, text=sentence(f"{who} began to run, {took} after they were sent to {where}"))


def _ends(jobs: Sequence[Job]) -> Iterator[StoryLine]:
    """Each end by itself; those that are alike, together."""
    alike: dict[str, list[Job]] = {}
    for job in jobs:
        if job.ended_at is not None:
            alike.setdefault(end_words(job.reason, job.exit_status, clause(job.message)), []).append(job)
    for words, ended in alike.items():
        at = max(job.ended_at for job in ended if job.ended_at is not None)
        text = f"{_who(ended, len(jobs))} {words}{_after(ended)}"
        fault = FAULTS.get(JOB_REASONS[ended[0].reason].fault) if ended[0].reason is not None else None
        yield StoryLine(at=at, text=sentence(f"{text} ({fault})" if fault and _failed(ended[0]) else text))


def _failed(job: Job) -> bool:
    return job.status is JobStatus.FAILED


def _who(ended: Sequence[Job], of: int) -> str:
    """In the singular, as are the words for an end."""
    if of == 1:
        return "it"
    if len(ended) == of:
        return f"each of the {of} nodes"
    return (
        f"node {ended[0].node}" if len(ended) == 1 else f"each of nodes {listed([str(job.node) for job in ended])}"
    )


def _after(ended: Iterable[Job]) -> str:
    ran = [
        (job.ended_at - job.started_at).total_seconds()
        for job in ended
        if job.started_at is not None and job.ended_at is not None
    ]
    if not ran:
        return ", before it ran"
    return f", after it ran for {duration(min(ran))}" + (" or more" if len(ran) > 1 else "")
