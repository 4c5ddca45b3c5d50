"""How long each phase of an attempt took.

``waiting`` for capacity, ``getting ready`` (instances are made), ``starting`` and ``pulling`` (the image),
``running``, ``ending``. Each begins where the one before it ends, so that they add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from perdure.core.story.facts import Claim, Facts, Job
from perdure.model.api import Spell
from perdure.model.statuses import ClaimStatus, JobStatus

SHORTEST = 0.05
"""Seconds of a phase that is worth naming."""


def spells(facts: Facts, claims: Sequence[Claim], jobs: Sequence[Job], now: datetime) -> tuple[Spell, ...]:
    """Those there were so far."""
    marks = _marks(claims, jobs)
    end = _end(facts, claims, jobs)
    found: list[Spell] = []
    begin = min([it.queued_at for it in claims] + [it.submitted_at for it in jobs])
    for phase, mark in marks:
        until = mark or end or now
        found.append(Spell(phase=phase, seconds=(until - begin).total_seconds(), over=(mark or end) is not None))
        if mark is None:
            break
        begin = max(begin, mark)
    return tuple(it for it in _with_pulling(found, jobs) if it.seconds >= SHORTEST or not it.over)


def _marks(claims: Sequence[Claim], jobs: Sequence[Job]) -> list[tuple[str, datetime | None]]:
    """Each phase and when it was over; None: it is not, or never was."""
    granted = claims[-1].granted_at if claims else None
    ready = claims[-1].moved.get(ClaimStatus.READY) if claims else None
    sent = min((job.submitted_at for job in jobs), default=None)
    return [
        ("waiting", granted or sent),
        ("getting ready", ready or sent),
        ("starting", _all([job.started_at for job in jobs])),
        ("running", _first([job.moved.get(JobStatus.TERMINATING) or job.ended_at for job in jobs])),
        ("ending", _all([job.ended_at for job in jobs])),
    ]


def _end(facts: Facts, claims: Sequence[Claim], jobs: Sequence[Job]) -> datetime | None:
    """When all of it was over."""
    if jobs:
        return _all([job.ended_at for job in jobs])
    return claims[-1].ended_at or facts.ended_at


def _all(times: Sequence[datetime | None]) -> datetime | None:
    known = [time for time in times if time is not None]
    return max(known) if known and len(known) == len(times) else None


def _first(times: Sequence[datetime | None]) -> datetime | None:
    return min((time for time in times if time is not None), default=None)


def _with_pulling(found: Sequence[Spell], jobs: Sequence[Job]) -> list[Spell]:
    """The longest pull is told apart from the start that it is part of."""
    pulls = [_pulled(job) for job in jobs]
    longest = max(pulls, default=0.0)
    told: list[Spell] = []
    for spell in found:
        if spell.phase == "starting" and SHORTEST <= longest <= spell.seconds:
            told.append(spell.but(seconds=spell.seconds - longest))
            told.append(Spell(phase="pulling", seconds=longest))
        else:
            told.append(spell)
    return told


def _pulled(job: Job) -> float:
    begin, end = job.moved.get(JobStatus.PULLING), job.moved.get(JobStatus.RUNNING)
    return (end - begin).total_seconds() if begin is not None and end is not None else 0.0
