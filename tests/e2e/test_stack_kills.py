"""kill -9 of any part, of the supervisor, and of all of them: every run goes on."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perdure.backends.local_shims import folders
from tests.support.stack import Stack, fresh


@pytest.fixture(scope="module")
def up() -> Iterator[Stack]:
    """A stack that is up, for kills that it must survive."""
    with fresh() as stack:
        stack.up()
        yield stack


def begin(stack: Stack, name: str) -> Path:
    """A run of two nodes that count until its gate is opened; the gate."""
    gate = stack.home.parent / f"{name}.gate"
    command = f"i=0; while [ ! -e {gate} ]; do i=$((i+1)); echo line $i; sleep 0.2; done; echo last"
    path = stack.home.parent / f"{name}.yml"
    stack.home.parent.chmod(0o755)
    path.write_text(json.dumps({"type": "task", "name": name, "nodes": 2, "commands": [command]}))
    stack.ok("apply", "-f", str(path), "-y", "-d")
    for node in ("0", "1"):
        stack.until(lambda node=node: "line 1\n" in stack.ok("logs", name, "--job", node), "a job's first line")
    return gate


def shown(stack: Stack, name: str) -> dict[str, Any]:
    return json.loads(stack.ok("run", "get", name, "--json"))


def finish(stack: Stack, name: str, gate: Path) -> None:
    """Open the gate: the run ends well, its logs have every line once, and every invariant holds."""
    gate.touch()
    stack.until(lambda: shown(stack, name)["status"] == "done", f"{name} to be done")
    for node in ("0", "1"):
        *lines, last = stack.ok("logs", name, "--job", node).splitlines()
        assert lines == [f"line {n}" for n in range(1, len(lines) + 1)]
        assert last == "last"
    assert len(shown(stack, name)["jobs"]) == 2, "nothing was run again"
    stack.ok("doctor")


@pytest.mark.parametrize("part", ["temporal", "postgres", "worker"])
def test_a_killed_part_is_started_again_and_the_run_goes_on(up: Stack, part: str) -> None:
    gate = begin(up, f"kill-{part}")
    was = up.kill(part)
    up.wait_until_up_again(part, was)
    assert "was killed (SIGKILL); starting it again" in (up.home / "logs" / "supervisor.log").read_text()
    finish(up, f"kill-{part}", gate)


def test_postgres_told_to_end_does_not_wait_for_its_clients_and_the_run_goes_on(up: Stack) -> None:
    gate = begin(up, "end-postgres")
    was = up.pid("postgres")
    os.kill(was, signal.SIGTERM)
    up.wait_until_up_again("postgres", was)
    finish(up, "end-postgres", gate)


def test_a_killed_agent_is_started_again_and_the_run_goes_on(up: Stack) -> None:
    gate = begin(up, "kill-agent")
    for folder in folders(up.home):
        shim = folder.shim()
        assert shim is not None
        os.kill(shim.pid, signal.SIGKILL)
        up.until(lambda f=folder, old=shim: f.shim() not in (None, old), "the agent again")
    finish(up, "kill-agent", gate)


def test_a_killed_supervisor_is_replaced_and_the_run_goes_on(up: Stack) -> None:
    gate = begin(up, "kill-supervisor")
    before = {up.pid(part) for part in ("temporal", "postgres", "worker")}
    up.kill("supervisor")
    said = up.up()
    assert "left behind" in said
    assert before.isdisjoint(up.described["pids"].values())
    finish(up, "kill-supervisor", gate)


def test_everything_killed_at_once_goes_on_after_up(up: Stack) -> None:
    gate = begin(up, "kill-all")
    for part in ("supervisor", "worker", "temporal", "postgres"):
        up.kill(part)
    up.kill_agents("perdure.agents.shim")
    assert "Perdure is up" in up.up()
    finish(up, "kill-all", gate)


def test_down_after_a_killed_supervisor_stops_what_it_left(stack: Stack) -> None:
    stack.up()
    stack.kill("supervisor")
    assert len(stack.processes()) >= 3
    assert "was killed; what it started goes on" in stack.refused("status")
    said = stack.ok("down")
    for part in ("worker", "temporal", "postgres"):
        assert f"stopped the {part} that a killed `perdure up` had left behind" in said
    assert stack.processes() == []


def test_a_pid_that_now_belongs_to_somebody_else_is_left_alone(stack: Stack) -> None:
    stack.up()
    stack.ok("down")
    for part in ("worker", "temporal", "postgres"):
        record = stack.home / "run" / f"{part}.pid"
        stale = json.loads(record.read_text())
        record.write_text(json.dumps({**stale, "pid": os.getpid()}))
    assert "left behind" not in stack.up()
