"""The whole story: how it stands, who wanted what, each attempt, and what comes next."""

from __future__ import annotations

from datetime import datetime

from perdure.core.story.attempts import attempts, tried
from perdure.core.story.facts import Facts
from perdure.core.story.outlook import between_occurrences, outlook
from perdure.core.story.words import clause, counted, lasting, listed, stopped
from perdure.model.api import Story
from perdure.model.durations import in_words
from perdure.model.policy import Retry, RunPolicy
from perdure.model.statuses import RunStatus

ENDED = {
    RunStatus.DONE: "is done: it ended",
    RunStatus.FAILED: "failed",
    RunStatus.TERMINATED: "was stopped",
}


def tell(facts: Facts, now: datetime) -> Story:
    """Of a run, as it stands ``now``."""
    policy = facts.policy
    return Story(
        project=policy.project,
        name=policy.name,
        run_id=policy.run_id,
        status=facts.status.value,
        reason=facts.reason.value if facts.reason else None,
        headline=_headline(facts, now),
        beginning=tuple(_beginning(policy)),
        attempts=attempts(facts, now),
        next=tuple(outlook(facts, now)),
        submitted_at=policy.submitted_at,
        ended_at=facts.ended_at,
    )


def _headline(facts: Facts, now: datetime) -> str:
    name, since = facts.policy.name, lasting(facts.policy.submitted_at, now)
    why = f": {clause(facts.message)}" if facts.message else ""
    if facts.ended_at is not None:
        return stopped(
            f"{name} {_ended(facts, facts.ended_at, now)}" + ("" if facts.status is RunStatus.DONE else why)
        )
    if facts.superseded:
        return f"{name} is lost: a later run has its name."
    match facts.status:
        case RunStatus.TERMINATING:
            return stopped(f"{name} is being ended{why}")
        case RunStatus.RUNNING:
            return f"{name} is running; it was submitted {since} ago."
        case RunStatus.PENDING if between_occurrences(facts):
            return stopped(f"{name} waits for its schedule{why}")
        case RunStatus.PENDING:
            return f"{name} failed, and is to be tried again; it was submitted {since} ago."
        case _:
            return f"{name} does not run yet, {since} after it was submitted."


def _ended(facts: Facts, end: datetime, now: datetime) -> str:
    """``failed 3 min ago, 41 s after it was submitted and in 2 attempts``"""
    times = max((it.submission for it in tried(facts)), default=0) + 1
    attempts = f" and in {counted(times, 'attempt')}" if times > 1 else ""
    took = lasting(facts.policy.submitted_at, end)
    return f"{ENDED.get(facts.status, 'ended')} {lasting(end, now)} ago, {took} after it was submitted{attempts}"


def _beginning(policy: RunPolicy) -> list[str]:
    asked = counted(policy.nodes, "node")
    if policy.replicas > 1:
        asked = f"{counted(policy.replicas, 'replica')} of {asked}"
    return [
        f"{policy.user or 'Somebody'} submitted it as a {policy.kind} of {asked}.",
        _of_retry(policy.retry),
    ]


def _of_retry(retry: Retry | None) -> str:
    if retry is None:
        return "It has no `retry`: what fails is not tried again, and it does not wait for capacity."
    most = f", {counted(retry.max_attempts, 'attempt')} at most" if retry.max_attempts is not None else ""
    events = listed([event.value for event in retry.on])
    return f"Its `retry` covers {events}, each for {in_words(retry.duration)}{most}."
