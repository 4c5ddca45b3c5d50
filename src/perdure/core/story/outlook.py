"""What happens next, and when: the rules of ``core.run``, said of one run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from perdure.core.run.calendar import RESTS, waits
from perdure.core.slots import in_words as when
from perdure.core.slots import slots
from perdure.core.story.attempts import Tried, tried
from perdure.core.story.facts import Claim, Facts, Job
from perdure.core.story.words import by, clause, counted, listed, sentence
from perdure.model.durations import in_words
from perdure.model.policy import Retry, Schedule
from perdure.model.statuses import ClaimStatus, JobStatus, RetryEvent, RunStatus


def outlook(facts: Facts, now: datetime) -> Iterator[str]:
    """Sentences."""
    if facts.ended_at is not None:
        yield from _of_ended(facts)
        return
    if facts.superseded:
        yield "Nothing: its workflow is gone, and the sweep gives back what it held."
        return
    if facts.status is RunStatus.TERMINATING:
        yield from _of_ending(facts, now)
        return
    schedule = facts.policy.schedule
    if schedule is not None and between_occurrences(facts):
        yield from _of_schedule(facts, schedule, now)
        return
    latest = _latest(facts)
    if not latest:
        yield "Its claim of capacity comes first."
    for one in latest:
        for said in _of_attempt(facts, one, now):
            yield said if len(latest) == 1 else f"Replica {one.replica}: {said}"
    if schedule is not None and (slot := next(slots(schedule, now), None)) is not None:
        yield f"Then it waits for the next time of its schedule, {when(schedule, slot)}, unless that is paused."


def between_occurrences(facts: Facts) -> bool:
    """It has a schedule, and nothing of it is under way."""
    return facts.policy.schedule is not None and facts.status is RunStatus.PENDING and waits(facts.message)


def _of_schedule(facts: Facts, schedule: Schedule, now: datetime) -> Iterator[str]:
    """Between two occurrences."""
    name = facts.policy.name
    slot = next(slots(schedule, now), None)
    if facts.message.startswith(RESTS):
        yield f"Nothing until somebody goes on with its schedule (perdure run resume {name}) or triggers it."
    elif slot is not None:
        yield f"Its next occurrence begins {when(schedule, slot)}, {by(slot, now)}."
        yield f"Sooner by hand: perdure run trigger {name}"
    else:
        yield f"Nothing: its schedule has no further times. To end it: perdure stop {name}"


def _of_ended(facts: Facts) -> Iterator[str]:
    if facts.jobs:
        yield f"Nothing: it has ended. What it printed: perdure logs {facts.policy.name}"
        return
    yield "Nothing: it has ended, and nothing of it ran."
    if facts.policy.retry is None and any(claim.status is ClaimStatus.REFUSED for claim in facts.claims):
        yield "With `retry: true` it would have waited for capacity."


def _latest(facts: Facts) -> list[Tried]:
    """The last submission of each replica."""
    last = {one.replica: one for one in tried(facts)}
    return [last[replica] for replica in sorted(last)]


def _of_attempt(facts: Facts, one: Tried, now: datetime) -> Iterator[str]:
    claim = one.claims[-1] if one.claims else None
    alive = [job for job in one.jobs if job.ended_at is None]
    if alive:
        yield from _of_jobs(facts, alive, now)
    elif one.jobs or (claim is not None and claim.ended_at is not None):
        yield sentence(clause(facts.message)) or "It is tried again after its pause."
    elif claim is not None and claim.status is ClaimStatus.WAITING:
        yield from _of_waiting(facts, claim, one, now)
    elif claim is not None:
        names = listed([place.name for place in claim.places if place.new]) or "its instances"
        yield f"Its jobs start as soon as {names} can be reached."
        limit = (claim.granted_at or claim.queued_at) + timedelta(seconds=facts.policy.timing.provisioning)
        retried = "asked for again" if _waits(facts.policy.retry) else "failed"
        yield f"If that does not come to pass {by(limit, now)}, they are given up, and it is {retried}."


def _waits(retry: Retry | None) -> bool:
    return retry is not None and RetryEvent.NO_CAPACITY in retry.on


def _of_waiting(facts: Facts, claim: Claim, one: Tried, now: datetime) -> Iterator[str]:
    front = f"{counted(claim.ahead, 'claim')} in front of it" if claim.ahead else "nobody in front of it"
    yield f"It begins as soon as its capacity is free: it is in the queue, with {front}."
    retry = facts.policy.retry
    if retry is not None:
        end = _window_begins(facts, one) + timedelta(seconds=retry.duration)
        yield f"It gives up {by(end, now)}: `retry.duration` is {in_words(retry.duration)}."


def _window_begins(facts: Facts, one: Tried) -> datetime:
    """Of waiting for capacity: at submission, or when the submission before failed."""
    ends = [
        job.ended_at
        for job in facts.jobs
        if job.replica == one.replica
        and job.submission == one.submission - 1
        and job.status is JobStatus.FAILED
        and job.ended_at is not None
    ]
    return min(ends, default=facts.policy.submitted_at)


def _of_jobs(facts: Facts, alive: Sequence[Job], now: datetime) -> Iterator[str]:
    waiting = [job for job in alive if job.started_at is None]
    if waiting:
        pulling = any(job.status is JobStatus.PULLING for job in waiting)
        who = "it runs" if len(alive) == 1 else f"{counted(len(waiting), 'node')} of {len(alive)} still to run"
        yield sentence(f"{who} as soon as its image is pulled" if pulling else f"{who} in a moment")
        return
    yield "It runs until its commands have ended." if len(alive) == 1 else "It runs until its nodes have ended."
    if facts.max_duration is not None:
        began = min(job.started_at for job in alive if job.started_at is not None)
        end = began + timedelta(seconds=facts.max_duration)
        yield f"Its `max_duration` of {in_words(facts.max_duration)} is over {by(end, now)}: it is stopped then."


def _of_ending(facts: Facts, now: datetime) -> Iterator[str]:
    policy = facts.policy
    alive = [job for job in facts.jobs if job.ended_at is None]
    if not alive:
        yield "What it held is given back; then it has ended."
        return
    grace = in_words(policy.timing.stop_grace)
    who = "Its job has" if len(alive) == 1 else f"Its {len(alive)} jobs have"
    yield f"{who} {grace} from {policy.stop_signal} to SIGKILL."
    if policy.stop_duration is not None and facts.ending_at is not None:
        end = facts.ending_at + timedelta(seconds=policy.stop_duration)
        yield f"At the latest {by(end, now)} it is over: its `stop_duration` is {in_words(policy.stop_duration)}."
