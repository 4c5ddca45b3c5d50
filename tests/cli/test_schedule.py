"""Runs with a schedule: what their plan says, what may be done with them, and that nobody waits for their end."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import PLAN, FakeClient, Program, a_job, a_run

NIGHTLY = "type: task\nname: nightly\ncommands: [x]\nschedule: {cron: '0 2 * * *', timezone: Europe/Berlin}\n"
TIMES = tuple(f"{day} 2026-12-0{date} 02:00 CET" for date, day in enumerate(("Tue", "Wed", "Thu", "Fri", "Sat"), 1))


@pytest.fixture
def nightly(fake: FakeClient) -> FakeClient:
    fake.plan_answer = PLAN.but(upcoming=TIMES)
    fake.run = a_run("nightly", "pending", (a_job(),), message=f"next at {TIMES[0]}")
    return fake


@pytest.mark.parametrize("options", [(), ("-d",)])
def test_apply_says_when_it_will_run_and_does_not_wait(
    perdure: Program, nightly: FakeClient, options: tuple[str, ...]
):
    ended = perdure("apply", "-f", "-", "-y", *options, input=NIGHTLY)
    assert (ended.code, ended.out) == (0, "")
    said = " ".join(ended.err.split())
    assert f"Next times {' '.join(TIMES)}" in said
    assert f"It runs next at {TIMES[0]}; now, with: perdure run trigger nightly." in said


def test_apply_prints_a_schedule_as_it_begins(perdure: Program, nightly: FakeClient):
    ended = perdure("apply", "-f", "-", "-y", "--json", input=NIGHTLY)
    assert ended.code == 0
    assert json.loads(ended.out)["status"] == "pending"


def test_a_run_without_a_schedule_has_no_times(perdure: Program, fake: FakeClient):
    assert "Next times" not in perdure("apply", "-f", "-", "-y", input="type: task\nname: xx\ncommands: [x]\n").err


@pytest.mark.parametrize("command", [("ps",), ("run", "get", "nightly")])
def test_a_schedule_is_pending_with_its_next_time(perdure: Program, nightly: FakeClient, command: tuple[str, ...]):
    ended = perdure(*command)
    assert ended.code == 0
    assert f"next at {TIMES[0]}" in ended.out and "pending" in ended.out


@pytest.mark.parametrize(
    ("command", "did", "said"),
    [
        (("run", "trigger"), "trigger nightly", "An occurrence of nightly begins"),
        (("run", "pause"), "pause nightly", "perdure run resume nightly"),
        (("run", "resume"), "resume nightly", "The schedule of nightly goes on"),
        (("stop", "--occurrence"), "stop nightly", f"The run is pending; next at {TIMES[0]}."),
        (("stop", "--occurrence", "-x"), "abort nightly", "The occurrence of nightly has ended"),
    ],
)
def test_a_schedule_is_in_ones_hand(
    perdure: Program, nightly: FakeClient, command: tuple[str, ...], did: str, said: str
):
    ended = perdure(*command, "nightly")
    assert ended.code == 0, ended.err
    assert nightly.schedules.did == [did]
    assert nightly.stopped == []
    assert said in " ".join(ended.err.split())


@pytest.mark.parametrize(
    "command", [("run", "trigger"), ("run", "pause"), ("run", "resume"), ("stop", "--occurrence")]
)
def test_what_a_run_cannot_do_is_said_in_a_sentence(
    perdure: Program, nightly: FakeClient, command: tuple[str, ...]
):
    nightly.schedules.refusal = "run nightly cannot do that: the run has no schedule"
    ended = perdure(*command, "nightly")
    assert (ended.code, ended.out) == (1, "")
    assert "the run has no schedule" in ended.err
