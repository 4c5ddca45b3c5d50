"""The slots of a schedule: standard cron on the clock of a place.

On days on which the clock changes it does as Debian's cron: a time of day that does not exist that day runs when
the clock has moved on; one that exists twice runs the first time. An expression with ``*`` in its minutes or hours
means real time passing: it runs in every hour there is, and in none there is not. Slots only go forward in UTC.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from cronsim import CronSim

from perdure.model.messages import CalendarPage
from perdure.model.policy import Schedule

COUNTED = 10_000
"""Slots that are counted one by one; more are ``more``."""

_LATELY = (timedelta(hours=1), timedelta(days=1), timedelta(days=31), timedelta(days=366))


def slots(schedule: Schedule, after: datetime) -> Iterator[datetime]:
    """Every slot after this moment, in UTC; each once, though several expressions name it."""
    local = after.astimezone(ZoneInfo(schedule.timezone))
    last = after
    for slot in heapq.merge(*(_utc(CronSim(cron, local)) for cron in schedule.cron)):
        if slot > last:
            last = slot
            yield slot


def upcoming(schedule: Schedule, after: datetime, count: int = 5) -> tuple[str, ...]:
    """The next slots, in words."""
    return tuple(in_words(schedule, slot) for slot in islice(slots(schedule, after), count))


def page(schedule: Schedule, since: datetime, until: datetime) -> CalendarPage:
    """The slots in ``(since, until]``, and the next one."""
    first = last = None
    count = 0
    for slot in islice(slots(schedule, since), COUNTED):
        if slot > until:
            break
        first, last, count = first or slot, slot, count + 1
    if count == COUNTED:
        last = _latest(schedule, since, until)
    following = next(slots(schedule, max(since, until)), None)
    return CalendarPage(
        count=count,
        more=count == COUNTED,
        first_words=in_words(schedule, first),
        last=last,
        last_words=in_words(schedule, last),
        next=following,
        next_words=in_words(schedule, following),
    )


def in_words(schedule: Schedule, slot: datetime | None) -> str:
    """``Mon 2026-11-30 02:00 CET``: as the schedule's own clock shows it."""
    return "" if slot is None else slot.astimezone(ZoneInfo(schedule.timezone)).strftime("%a %Y-%m-%d %H:%M %Z")


def _utc(local: Iterator[datetime]) -> Iterator[datetime]:
    return (slot.astimezone(UTC) for slot in local)


def _latest(schedule: Schedule, since: datetime, until: datetime) -> datetime | None:
    """The last slot up to ``until``, without going through all of them."""
    for lately in _LATELY:
        last = None
        for slot in slots(schedule, max(since, until - lately)):
            if slot > until:
                break
            last = slot
        if last is not None:
            return last
    return None
