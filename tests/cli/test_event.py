"""``perdure event``: what it asks for, and how it is printed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from perdure.model import api
from tests.cli.conftest import FakeClient, Program

AT = datetime(2026, 11, 30, 9, 8, 7, tzinfo=UTC)
RUN = UUID(int=1)
ROW = api.EventRow(
    id=5,
    at=AT,
    actor="user ann",
    targets=(
        api.EventTarget(kind="job", id=UUID(int=2), name="train-0-0"),
        api.EventTarget(kind="run", id=RUN, name="train"),
    ),
    before="running",
    status="failed",
    reason="container_exited_with_error",
    message="failed: exited with [bold]\x1b[31m",
)


def test_an_event_is_a_line_that_says_when_who_what_and_why(perdure: Program, fake: FakeClient):
    fake.events.rows = (ROW,)
    ended = perdure("event")
    here = f"{AT.astimezone():%Y-%m-%d %H:%M:%S}"
    line = f"[{here}] [ann] [job train-0-0, run train] failed: exited with [bold]\\x1b[31m\n"
    assert (ended.code, ended.out) == (0, line)


def test_events_are_one_document_and_watched_ones_a_line_each(perdure: Program, fake: FakeClient):
    fake.events.rows = (ROW, ROW.but(id=6))
    assert [it["id"] for it in json.loads(perdure("event", "--json").out)["events"]] == [5, 6]
    lines = perdure("event", "list", "-w", "--json").out.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [5, 6]
    assert json.loads(lines[0])["targets"][1] == {"kind": "run", "id": str(RUN), "name": "train"}


@pytest.mark.parametrize(
    ("arguments", "asked"),
    [
        ([], {"project": "main"}),
        (["--project", "other", "-n", "7"], {"project": "other", "limit": 7}),
        (["--target-run", "train"], {"kind": "run", "name": "train"}),
        (["list", "--within-run", "train"], {"kind": "run", "name": "train", "within": True}),
        (["--within-fleet", "pool"], {"kind": "fleet", "name": "pool", "within": True}),
        (["--target-instance", "pool-0"], {"kind": "instance", "name": "pool-0"}),
        (["--target-secret", "key"], {"kind": "secret", "name": "key"}),
        (["--since", "2026-11-30T10:08:07+01:00"], {"since": AT}),
    ],
)
def test_what_is_asked_for(perdure: Program, fake: FakeClient, arguments: list[str], asked: dict[str, object]):
    assert perdure("event", *arguments).code == 0
    assert fake.events.asked == [api.EventQuery.model_validate({"project": "main", **asked})]


def test_a_duration_is_so_long_ago(perdure: Program, fake: FakeClient):
    assert perdure("event", "--since", "90m").code == 0
    since = fake.events.asked[0].since
    assert since is not None
    assert abs(datetime.now(UTC) - since - timedelta(minutes=90)) < timedelta(minutes=1)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--since", "yesterday"], 1, "--since is neither a duration nor a moment: 'yesterday'"),
        (["--since", "2026-11-30T10:00"], 1, "--since is a time without a zone"),
        (["--target-run", "a", "--within-run", "b"], 2, "--target-run and --within-run cannot be given together"),
        (["-n", "0"], 2, "greater than or equal to 1"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_sentence(
    perdure: Program, fake: FakeClient, arguments: list[str], code: int, said: str
):
    ended = perdure("event", *arguments)
    assert ended.code == code
    assert said in " ".join(ended.err.replace("│", " ").split())
    assert not fake.events.asked


def test_of_nothing_it_is_said_that_there_is_nothing(perdure: Program, fake: FakeClient):
    assert perdure("event").err == "No events in project main.\n"
    ended = perdure("event", "--within-run", "train", "--since", "1h")
    assert (ended.out, ended.err) == ("", "No events of run train in project main since then.\n")
