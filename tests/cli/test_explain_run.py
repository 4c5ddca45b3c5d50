"""``perdure explain``: a story on the screen, and as JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from perdure.model import api
from tests.cli.conftest import FakeClient, Program

AT = datetime(2026, 11, 30, 9, 8, 7, tzinfo=UTC)
STORY = api.Story(
    project="main",
    name="train",
    status="running",
    headline="train is running; it was submitted 9 s ago.",
    beginning=("ann submitted it as a task of 1 node.",),
    attempts=(
        api.Attempt(
            replica=0,
            submission=0,
            began_at=AT,
            lines=(
                api.StoryLine(at=AT, text="It asked for 1 instance, and at once got pool-0, which was free."),
                api.StoryLine(at=AT + timedelta(seconds=1), text="It began to run [red]\x1b[31m" + " far" * 60),
            ),
            spells=(
                api.Spell(phase="starting", seconds=1),
                api.Spell(phase="running", seconds=8, over=False),
            ),
        ),
    ),
    next=("It runs until its commands have ended.",),
)


def test_a_story_is_told_with_its_times_and_what_comes_next(perdure: Program, fake: FakeClient):
    fake.told = STORY
    ended = perdure("explain", "train")
    here, later = (f"{time.astimezone():%H:%M:%S}" for time in (AT, AT + timedelta(seconds=1)))
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == [
        "train is running; it was submitted 9 s ago.",
        "ann submitted it as a task of 1 node.",
        "",
        f"Attempt 0  {AT.astimezone():%d %b} {here}",
        f"  {here} It asked for 1 instance, and at once got pool-0, which was free.",
        f"  {later} It began to run [red]\\x1b[31m{' far' * 60}",
        "  Time: starting 1.0 s, running 8.0 s so far",
        "",
        "What happens next",
        "  It runs until its commands have ended.",
    ]


def test_attempts_of_several_replicas_say_of_which(perdure: Program, fake: FakeClient):
    attempt = STORY.attempts[0]
    fake.told = STORY.but(attempts=(attempt, attempt.but(replica=1)))
    titles = [line[:22] for line in perdure("explain", "train").out.splitlines() if line.startswith("Attempt")]
    assert titles == ["Attempt 0 of replica 0", "Attempt 0 of replica 1"]


def test_a_story_is_one_json_document(perdure: Program, fake: FakeClient):
    fake.told = STORY
    assert api.Story.model_validate(json.loads(perdure("explain", "train", "--json").out)) == STORY


def test_of_a_run_that_never_was_there_is_no_story(perdure: Program, fake: FakeClient):
    ended = perdure("explain", "train")
    assert (ended.code, ended.out) == (1, "")
    assert "there is no run train in project main" in ended.err
