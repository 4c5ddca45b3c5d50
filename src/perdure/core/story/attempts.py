"""One attempt after the other: its claims of capacity, its jobs, and why another one followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from perdure.core.story.capacity import lines_of_claims
from perdure.core.story.facts import Claim, Facts, Job
from perdure.core.story.jobs import lines_of_jobs
from perdure.core.story.spells import spells
from perdure.core.story.words import lasting
from perdure.model.api import Attempt, StoryLine


@dataclass(frozen=True)
class Tried:
    """One submission of one replica."""

    replica: int
    submission: int
    claims: tuple[Claim, ...]
    jobs: tuple[Job, ...]

    @property
    def began_at(self) -> datetime:
        return min([it.queued_at for it in self.claims] + [it.submitted_at for it in self.jobs])

    @property
    def ended_at(self) -> datetime | None:
        """When the last of it was over; None if something of it goes on."""
        ends = [it.ended_at for it in self.jobs] or [it.ended_at for it in self.claims[-1:]]
        known = [end for end in ends if end is not None]
        return max(known) if known and len(known) == len(ends) else None


def tried(facts: Facts) -> list[Tried]:
    """In the order in which they began."""
    keys = {(it.replica, it.submission) for it in (*facts.claims, *facts.jobs)}
    found = [
        Tried(
            *key,
            tuple(it for it in facts.claims if (it.replica, it.submission) == key),
            tuple(it for it in facts.jobs if (it.replica, it.submission) == key),
        )
        for key in keys
    ]
    return sorted(found, key=lambda it: (it.began_at, it.replica, it.submission))


def attempts(facts: Facts, now: datetime) -> tuple[Attempt, ...]:
    every = tried(facts)
    return tuple(_attempt(facts, one, _later(every, one), now) for one in every)


def _later(every: Sequence[Tried], one: Tried) -> Tried | None:
    wanted = (one.replica, one.submission + 1)
    return next((it for it in every if (it.replica, it.submission) == wanted), None)


def _attempt(facts: Facts, one: Tried, later: Tried | None, now: datetime) -> Attempt:
    lines = [*lines_of_claims(facts, one.claims), *lines_of_jobs(one.jobs)]
    if later is not None and one.ended_at is not None:
        pause = lasting(one.ended_at, later.began_at)
        lines.append(StoryLine(at=later.began_at, text=f"`retry` covers this: after {pause} it was tried again."))
    return Attempt(
        replica=one.replica,
        submission=one.submission,
        began_at=one.began_at,
        ended_at=one.ended_at or (facts.ended_at if later is None else later.began_at),
        lines=tuple(sorted(lines, key=lambda line: line.at or one.began_at)),
        spells=spells(facts, one.claims, one.jobs, now),
    )
