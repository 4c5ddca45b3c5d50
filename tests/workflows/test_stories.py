"""What workflows do is told in events, and as a story: nothing left out, nothing twice."""

from __future__ import annotations

from datetime import datetime

from perdure.core.story import Facts, tell
from perdure.model.api import EventQuery, EventRow, Story, StoryQuery
from perdure.model.statuses import JobReason
from perdure.store import events, stories
from tests.support.simulated import Script
from tests.workflows.conftest import Lab


async def facts_of(lab: Lab, name: str) -> tuple[Facts, datetime]:
    async with lab.database.transaction() as tx:
        found = await stories.facts(tx, StoryQuery(project="main", name=name))
    assert found is not None
    return found


async def story_of(lab: Lab, name: str) -> Story:
    return tell(*await facts_of(lab, name))


async def events_of(lab: Lab, name: str) -> list[EventRow]:
    async with lab.database.transaction() as tx:
        return await events.listed(tx, EventQuery(project="main", kind="run", name=name, within=True, limit=1000))


async def test_every_status_of_a_run_and_its_job_is_one_event(lab: Lab) -> None:
    await lab.end(await lab.submit("whole"))
    moved = [(row.targets[0].kind, row.before, row.status) for row in await events_of(lab, "whole")]
    assert len(moved) == len(set(moved))
    for kind in ("run", "job", "claim"):
        steps = [(before, status) for what, before, status in moved if what == kind]
        assert [before for before, _ in steps[1:]] == [status for _, status in steps[:-1]], kind
    statuses = {kind: status for kind, _, status in moved}
    assert statuses == {"run": "done", "job": "done", "claim": "released"}


async def test_a_run_that_was_retried_is_told_attempt_by_attempt(lab: Lab) -> None:
    lab.hosts.script = lambda *_: Script(refuses=JobReason.EXECUTOR_ERROR)
    retry = {"on_events": ["error"], "duration": "1m", "max_attempts": 2}
    assert "gave up after 2 tries" in await lab.end(await lab.submit("again", retry=retry))
    story = await story_of(lab, "again")
    assert [attempt.submission for attempt in story.attempts] == [0, 1]
    assert "in 2 attempts: gave up after 2 tries" in story.headline
    first = [line.text for line in story.attempts[0].lines]
    assert first[0].startswith("It asked for 1 instance, and at once got local-0, which had to be made.")
    assert "could not be started on its host" in first[-2]
    assert first[-1].startswith("`retry` covers this: after ")
    assert "which was free" in story.attempts[1].lines[0].text
    times = [line.at for attempt in story.attempts for line in attempt.lines if line.at is not None]
    assert times == sorted(times)


async def test_a_run_that_waits_is_told_with_who_is_in_front_of_it(lab: Lab) -> None:
    retry = {"on_events": ["no-capacity"], "duration": "30m"}
    names = ("first", "second")
    runs = [await lab.submit(name, retry=retry, resources={"gpu": "A100:8"}) for name in names]
    for run in runs:
        await lab.status(run, "submitted", "waiting for capacity")
    ahead = [(await facts_of(lab, name))[0].claims[0].ahead for name in names]
    assert sorted(ahead) == [0, 1]
    story = await story_of(lab, names[ahead.index(1)])
    assert story.next[0].endswith("it is in the queue, with 1 claim in front of it.")
    assert "`retry.duration` is 30m" in story.next[1]
    for run in runs:
        await run.signal("stop")
        assert await lab.end(run) == "terminated"
    story = await story_of(lab, "first")
    assert story.headline.startswith("first was stopped ")
    assert story.next == ("Nothing: it has ended, and nothing of it ran.",)
