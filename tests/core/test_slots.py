"""When a schedule runs, also on the days on which clocks change."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from itertools import islice, pairwise, takewhile
from zoneinfo import ZoneInfo

import pytest

from perdure.core.slots import COUNTED, page, slots, upcoming
from perdure.model.policy import Schedule
from tests.core.minutes import every
from tests.core.minutes import page as simple_page

ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Tokyo", "UTC")
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


def year(zone: str, *cron: str) -> list[datetime]:
    """Every slot of 2026 by the zone's own clock."""
    place = ZoneInfo(zone)
    begin, end = datetime(2026, 1, 1, tzinfo=place), datetime(2027, 1, 1, tzinfo=place)
    schedule = Schedule(cron=cron, timezone=zone)
    before = begin.astimezone(UTC) - timedelta(seconds=1)
    return list(takewhile(lambda slot: slot < end, slots(schedule, before)))


def local(zone: str, found: list[datetime], day: date) -> list[str]:
    place = ZoneInfo(zone)
    return [f"{it.astimezone(place):%H:%M %z}" for it in found if it.astimezone(place).date() == day]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("cron", ["30 2 * * *", "0 0 * * *", "15 1 * * *", "59 23 * * *", "0 3 * * *"])
def test_a_time_of_day_runs_once_on_every_day_of_a_year(zone: str, cron: str) -> None:
    found = year(zone, cron)
    days = Counter(slot.astimezone(ZoneInfo(zone)).date() for slot in found)
    assert len(days) == 365 and set(days.values()) == {1}


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("cron", ["0,30 * * * *", "30 2 * * *", "0 2,3 * * *", "0 9 * * 1-5"])
def test_slots_only_go_forward_and_none_comes_twice(zone: str, cron: str) -> None:
    found = year(zone, cron, "0 2 * * *", "30 1 * * *")
    assert all(before < after for before, after in pairwise(found))


@pytest.mark.parametrize("zone", ZONES)
def test_an_hourly_schedule_runs_every_hour_that_passes(zone: str) -> None:
    found = year(zone, "0 * * * *")
    steps = {after - before for before, after in pairwise(found)}
    half = zone == "Australia/Lord_Howe"  # its clock moves by half an hour, over 02:00 and back
    assert steps == ({timedelta(hours=1), timedelta(minutes=90)} if half else {timedelta(hours=1)})
    assert len(found) == 365 * 24 - half


@pytest.mark.parametrize(
    ("zone", "cron", "day", "times"),
    [
        ("Europe/Berlin", "30 2 * * *", date(2026, 3, 29), ["03:00 +0200"]),
        ("Europe/Berlin", "30 2 * * *", date(2026, 10, 25), ["02:30 +0200"]),
        ("America/New_York", "0 2 * * *", date(2026, 3, 8), ["03:00 -0400"]),
        ("America/New_York", "30 1 * * *", date(2026, 11, 1), ["01:30 -0400"]),
        ("America/New_York", "0 2,3 * * *", date(2026, 3, 8), ["03:00 -0400"]),
        ("America/New_York", "0 0-4,* * * *", date(2026, 11, 2), [f"{hour:02}:00 -0500" for hour in range(24)]),
        ("Australia/Lord_Howe", "15 2 * * *", date(2026, 10, 4), ["02:30 +1100"]),
        ("Australia/Lord_Howe", "45 1 * * *", date(2026, 4, 5), ["01:45 +1100"]),
        ("Asia/Tokyo", "0 9 * * *", date(2026, 3, 29), ["09:00 +0900"]),
    ],
)
def test_days_on_which_clocks_change(zone: str, cron: str, day: date, times: list[str]) -> None:
    assert local(zone, year(zone, cron), day) == times


@pytest.mark.parametrize("minute", range(0, 240, 7))
@pytest.mark.parametrize(("zone", "day"), [("America/New_York", (2026, 11, 1)), ("Europe/Berlin", (2026, 10, 25))])
def test_looking_from_within_the_hour_that_comes_twice_never_goes_back(
    zone: str, day: tuple[int, int, int], minute: int
) -> None:
    after = datetime(*day, 3, 0, tzinfo=UTC) + timedelta(minutes=minute) - timedelta(hours=3)
    assert all(slot > after for slot in islice(slots(Schedule(cron=("30 1 * * *",), timezone=zone), after), 3))


@pytest.mark.parametrize(("weekday", "name"), [(0, "Sun"), (7, "Sun"), (1, "Mon"), (6, "Sat")])
def test_days_of_the_week_are_those_of_standard_cron(weekday: int, name: str) -> None:
    found = upcoming(Schedule(cron=(f"0 9 * * {weekday}",)), NEW_YEAR, 3)
    assert len(found) == 3 and all(words.startswith(name) for words in found)


def test_a_page_tells_what_was_missed_what_is_due_and_what_comes_next() -> None:
    daily = Schedule(cron=("0 9 * * *",), timezone="Asia/Tokyo")
    found = page(daily, NEW_YEAR, NEW_YEAR + timedelta(days=3, hours=1))
    assert (found.count, found.more) == (3, False)
    assert found.first_words == "Fri 2026-01-02 09:00 JST"
    assert found.last == datetime(2026, 1, 4, 0, 0, tzinfo=UTC)
    assert found.next_words == "Mon 2026-01-05 09:00 JST"


def test_a_page_with_nothing_due_tells_only_what_comes_next() -> None:
    daily = Schedule(cron=("0 9 * * *",))
    found = page(daily, NEW_YEAR, NEW_YEAR + timedelta(hours=8))
    assert (found.count, found.last, found.next) == (0, None, NEW_YEAR + timedelta(hours=9))


def test_years_of_minutes_are_not_gone_through_one_by_one() -> None:
    found = page(Schedule(cron=("* * * * *",)), NEW_YEAR - timedelta(days=3000), NEW_YEAR)
    assert (found.count, found.more) == (COUNTED, True)
    assert (found.last, found.next) == (NEW_YEAR, NEW_YEAR + timedelta(minutes=1))


def test_a_day_that_never_comes_has_no_next_slot() -> None:
    found = page(Schedule(cron=("0 0 29 2 *",)), NEW_YEAR, NEW_YEAR)
    assert found.next == datetime(2028, 2, 29, tzinfo=UTC)


@pytest.mark.parametrize("minutes", [1, 10])
@pytest.mark.parametrize("seconds", [0, 1, 59, 600, 86399])
def test_the_calendars_of_the_simulation_are_those_of_cron(minutes: int, seconds: int) -> None:
    since = NEW_YEAR + timedelta(seconds=seconds)
    for length in (0, 1, 60, 61, 3601):
        until = since + timedelta(seconds=length)
        real, simple = page(every(minutes), since, until), simple_page(every(minutes), since, until)
        assert (real.count, real.last, real.next) == (simple.count, simple.last, simple.next)
