"""The rules of a schedule.

Occurrences never overlap: a slot that comes while one is under way does not run. Of the slots that nobody was there
to start, the latest runs, late. While the schedule is paused none runs. Every slot that does not run is noted, with
the reason; slots are read when the run is idle, so that a long occurrence or pause costs nothing. A trigger by hand
is an occurrence like any other, also of a paused schedule.

Stopping an occurrence leaves the schedule; stopping the run ends it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from perdure.core.run.commands import (
    READING,
    BeginOccurrence,
    Command,
    EndOccurrence,
    ReadCalendar,
    SkipSlot,
)
from perdure.core.run.state import (
    Calendar,
    CalendarRead,
    Occurrence,
    Phase,
    Replica,
    RunState,
    Shut,
    Stop,
)
from perdure.model.events import PauseWanted, TriggerWanted
from perdure.model.messages import CalendarPage
from perdure.model.statuses import RUN_REASONS

PAUSED = "the schedule was paused"
MISSED = "nobody was there to start it"
RESTS = "paused"
NEXT = "next at "
NO_MORE = "no further times"


# --- what to do ---------------------------------------------------------------------------------------------------


def next_of_schedule(state: RunState, now: datetime) -> Iterator[Command]:
    """What the schedule asks for now, if nothing of it is under way."""
    calendar = state.calendar
    if calendar is None or READING in state.outstanding:
        return
    if calendar.due is not None:
        yield SkipSlot(why=PAUSED, at=now) if calendar.paused else BeginOccurrence(slot=calendar.due, at=now)
    elif calendar.occurrence is not None:
        return
    elif calendar.shut:
        yield ReadCalendar(since=calendar.seen, until=calendar.shut[0].until, why=calendar.shut[0].why)
    elif calendar.triggered:
        yield BeginOccurrence(slot=None, at=now)
    elif not calendar.paused and (not calendar.known or calendar.may_have_slot(now)):
        yield ReadCalendar(since=calendar.seen, until=max(now, calendar.seen))


def end_of_occurrence(state: RunState, now: datetime) -> EndOccurrence:
    """All replicas are over: so is the occurrence, since the last of its jobs ended."""
    assert state.ending is not None
    ends = [job.ended_at for replica in state.replicas for job in replica.jobs if job.ended_at is not None]
    return EndOccurrence(reason=state.ending, message=state.ending_message, at=max(ends, default=now))


def next_slot(state: RunState) -> datetime | None:
    """When the schedule is to be looked at again."""
    calendar = state.calendar
    if calendar is None or calendar.occurrence is not None or calendar.paused:
        return None
    return calendar.next


# --- what happened ------------------------------------------------------------------------------------------------


def read(state: RunState, event: CalendarRead) -> RunState:
    """Note what is skipped, and know what is due and what comes next. A late answer is dropped."""
    calendar, question, page = state.calendar, event.question, event.page
    if calendar is None or question.since != calendar.seen:
        return state
    skipped = page.count if question.why else page.count - 1
    if skipped > 0:
        state = state.noting(event.at, _skipped(page, skipped, question.why or MISSED))
    due = None if question.why else page.last
    shut = calendar.shut
    if shut and question.why and shut[0].until == question.until:
        shut = shut[1:]
    calendar = calendar.but(
        seen=question.until,
        next=page.next,
        next_words=page.next_words,
        known=True,
        due=due,
        due_words=page.last_words if due else "",
        shut=shut,
    )
    return state.but(calendar=calendar)


def begun(state: RunState, command: BeginOccurrence) -> RunState:
    """A new occurrence: every replica begins anew, with the next submission."""
    calendar = state.calendar
    assert calendar is not None
    number = calendar.count + 1
    words = calendar.due_words if command.slot else f"triggered by {calendar.triggered}"
    if command.slot and calendar.triggered:
        state = state.noting(command.at, f"not triggered: {calendar.due_words} began")
    replicas = tuple(_anew(replica, command.at, first=number == 1) for replica in state.replicas)
    calendar = calendar.but(
        occurrence=Occurrence(number=number, words=words),
        count=number,
        due=None if command.slot else calendar.due,
        triggered="",
        stop=Stop.NO,
    )
    return state.but(calendar=calendar, replicas=replicas).noting(command.at, f"occurrence {number} began: {words}")


def skipped(state: RunState, command: SkipSlot) -> RunState:
    assert state.calendar is not None
    words = f"skipped {state.calendar.due_words}: {command.why}"
    return state.but(calendar=state.calendar.but(due=None, due_words="")).noting(command.at, words)


def ended(state: RunState, command: EndOccurrence) -> RunState:
    """The schedule goes on. Slots that came while the occurrence was under way do not run."""
    calendar = state.calendar
    assert calendar is not None and calendar.occurrence is not None
    status = RUN_REASONS[command.reason].status.value
    how = f"{status}: {command.message}" if command.message else status
    calendar = _shut(calendar, command.at, _ran_still(calendar.occurrence))
    text = f"occurrence {calendar.count} ended: {how}"
    calendar = calendar.but(occurrence=None, stop=Stop.NO, triggered="", last=how)
    stopped_by = "" if state.stop is Stop.NO else state.stopped_by
    state = state.but(calendar=calendar, ending=None, ending_message="", stopped_by=stopped_by)
    return state.noting(command.at, text)


def triggered(state: RunState, event: TriggerWanted) -> RunState:
    calendar = state.calendar
    if calendar is None or state.stop is not Stop.NO:
        return state
    by = event.by or "hand"
    if calendar.occurrence is not None:
        return state.noting(event.at, f"not triggered by {by}: {_ran_still(calendar.occurrence)}")
    return state.but(calendar=calendar.but(triggered=by))


def paused(state: RunState, event: PauseWanted) -> RunState:
    calendar = state.calendar
    if calendar is None or calendar.paused == event.on:
        return state
    state = state.noting(event.at, f"{'paused' if event.on else 'resumed'} by {event.by or 'hand'}")
    if not event.on and calendar.occurrence is None:
        calendar = _shut(calendar, event.at, PAUSED)
    return state.but(calendar=calendar.but(paused=event.on))


def in_words(calendar: Calendar) -> str:
    """Of a run that waits for its next occurrence."""
    if calendar.paused:
        words = RESTS
    elif calendar.next is not None:
        words = f"{NEXT}{calendar.next_words}"
    else:
        words = NO_MORE if calendar.known else ""
    return f"{words}; the last one: {calendar.last}" if calendar.last else words


def waits(message: str) -> bool:
    """Whether a run that says this is between two occurrences (``in_words``), and not between two tries of one."""
    return not message or message.startswith((RESTS, NEXT, NO_MORE))


def _anew(replica: Replica, at: datetime, *, first: bool) -> Replica:
    """With the next submission; the first occurrence has the first one."""
    submission = replica.submission if first else replica.submission + 1
    return Replica(num=replica.num, phase=Phase.RESTING, submission=submission, first=submission, clock=at)


def _shut(calendar: Calendar, until: datetime, why: str) -> Calendar:
    if not calendar.may_have_slot(until):
        return calendar
    return calendar.but(shut=(*calendar.shut, Shut(until=until, why=why)))


def _ran_still(occurrence: Occurrence) -> str:
    return f"occurrence {occurrence.number} was still under way"


def _skipped(page: CalendarPage, count: int, why: str) -> str:
    if count == 1:
        return f"skipped {page.first_words}: {why}"
    number = f"more than {count}" if page.more else str(count)
    return f"skipped {number} times from {page.first_words} on: {why}"
