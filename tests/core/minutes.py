"""Calendars that need no cron: a slot every so many minutes, found by arithmetic, for a hundred thousand lives."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from perdure.model.messages import CalendarPage
from perdure.model.policy import Schedule

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def every(minutes: int) -> Schedule:
    """``minutes`` must divide an hour."""
    return Schedule(cron=(f"*/{minutes} * * * *",))


def page(schedule: Schedule, since: datetime, until: datetime) -> CalendarPage:
    """As ``perdure.core.slots.page``, of a schedule made by ``every``."""
    step = timedelta(minutes=int(schedule.cron[0].split()[0].removeprefix("*/")))
    first, last = (since - EPOCH) // step + 1, (until - EPOCH) // step
    return CalendarPage(
        count=max(0, last - first + 1),
        first_words=_words(EPOCH + first * step),
        last=EPOCH + last * step if last >= first else None,
        last_words=_words(EPOCH + last * step),
        next=EPOCH + (last + 1) * step,
        next_words=_words(EPOCH + (last + 1) * step),
    )


def _words(slot: datetime) -> str:
    return f"{slot:%a %Y-%m-%d %H:%M UTC}"
