"""Schedules, with real workflows and a real database, on a calendar that has a slot every second."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from temporalio.client import WorkflowHandle, WorkflowUpdateFailedError

from activities import runs
from perdure.model.messages import CalendarPage
from perdure.model.policy import Schedule
from tests.support.simulated import Script
from tests.workflows.conftest import Lab

YEARLY = {"cron": "0 0 1 1 *"}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def every_second(schedule: Schedule, since: datetime, until: datetime) -> CalendarPage:
    first, last = (int((at - EPOCH).total_seconds()) for at in (since, until))
    following = EPOCH + timedelta(seconds=last + 1)
    return CalendarPage(
        count=last - first,
        first_words=f"second {first + 1}",
        last=EPOCH + timedelta(seconds=last) if last > first else None,
        last_words=f"second {last}",
        next=following,
        next_words=f"second {last + 1}",
    )


async def told(lab: Lab) -> list[str]:
    """What has been written of the run, in order."""
    rows = await lab.rows("SELECT words FROM events WHERE kind = 'run' AND before = status ORDER BY id")
    return [row.words for row in rows]


async def refusal(handle: WorkflowHandle[Any, Any], update: str) -> str:
    with pytest.raises(WorkflowUpdateFailedError) as refused:
        await handle.execute_update(update, {"by": "ann"})
    return str(refused.value.cause)


async def test_slot_after_slot_runs_and_the_schedule_lives_until_it_is_stopped(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "page", every_second)
    handle = await lab.submit("often", schedule={"cron": "* * * * *", "timezone": "Europe/Berlin"})
    await lab.until(lambda: lab.hosts.runs().get((0, 0, 2)) == 1)
    await handle.signal("stop")
    assert await lab.end(handle) == "terminated"
    assert set(lab.hosts.runs().values()) <= {0, 1}
    notes = await told(lab)
    assert [note for note in notes if note.startswith("occurrence 2 ended: done")]
    assert len([note for note in notes if note.startswith("occurrence 2 began: second ")]) == 1
    await lab.at_rest()


async def test_an_occurrence_is_triggered_and_stopped_and_the_schedule_goes_on(lab: Lab) -> None:
    lab.hosts.script = lambda *_: Script(seconds=None)
    handle = await lab.submit("yearly", schedule=YEARLY)
    await lab.status(handle, "pending", "next at")
    await handle.execute_update("trigger", {"by": "ann"})
    await lab.status(handle, "running")
    assert "occurrence 1 is under way" in await refusal(handle, "trigger")
    await handle.signal("stop", {"occurrence": True})
    await lab.status(handle, "pending", "the last one: terminated")
    await handle.execute_update("trigger", {"by": "bob"})
    await lab.status(handle, "running")
    await handle.signal("stop")
    assert await lab.end(handle) == "terminated"
    assert lab.hosts.runs() == {(0, 0, 0): 1, (0, 0, 1): 1}
    notes = await told(lab)
    assert "occurrence 1 began: triggered by ann" in notes and "occurrence 1 ended: terminated" in notes
    await lab.at_rest()


async def test_nothing_begins_while_a_schedule_is_paused(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = await lab.submit("paused", schedule=YEARLY)
    await lab.status(handle, "pending", "next at")
    await handle.execute_update("pause", {"by": "ann"})
    await lab.status(handle, "pending", "paused")
    await handle.execute_update("resume", {"by": "bob"})
    await lab.status(handle, "pending", "next at")
    await handle.signal("stop")
    assert await lab.end(handle) == "terminated"
    assert {"paused by ann", "resumed by bob"} <= set(await told(lab))
    assert lab.hosts.runs() == {}
    await lab.at_rest()


async def test_a_run_without_a_schedule_is_not_triggered(lab: Lab) -> None:
    lab.hosts.script = lambda *_: Script(seconds=None)
    handle = await lab.submit("plain")
    await lab.status(handle, "running")
    for update in ("trigger", "pause", "resume"):
        assert "has no schedule" in await refusal(handle, update)
    await handle.signal("stop")
    assert await lab.end(handle) == "terminated"
