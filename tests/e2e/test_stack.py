"""``perdure up``, ``status``, ``env``, ``down`` on a machine where all goes well."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import psutil
import pytest

from tests.support.stack import Stack, fresh

HELLO = {"type": "task", "name": "hello", "commands": ["echo hello from perdure"]}
LONG = {"type": "task", "name": "long", "commands": ["echo begun", "sleep 73219"]}


def apply(stack: Stack, configuration: dict[str, object], *options: str) -> str:
    path = stack.home.parent / f"{configuration['name']}.yml"
    path.write_text(json.dumps(configuration))
    return stack.ok("apply", "-f", str(path), "-y", *options)


def test_a_new_folder_is_up_runs_a_job_and_goes_down(stack: Stack) -> None:
    assert "Perdure is up" in stack.up()
    status = stack.ok("status")
    for part in ("Postgres", "Temporal", "Worker", "Web UI"):
        (line,) = [line for line in status.splitlines() if line.startswith(part)]
        assert " ready " in line
    assert stack.described["ui"] in status

    again = stack.run("up")
    assert again.returncode == 0
    assert "already up" in again.stdout and "Postgres" in again.stdout

    assert stack.ok("env").splitlines() == [
        f"export TEMPORAL_ADDRESS={stack.described['temporal']}",
        "export TEMPORAL_NAMESPACE=default",
    ]
    for part in stack.described["pids"].values():
        for listener in psutil.Process(part).net_connections("tcp"):
            if listener.status == psutil.CONN_LISTEN:
                assert listener.laddr.ip == "127.0.0.1"

    apply(stack, HELLO)
    assert stack.ok("logs", "hello") == "hello from perdure\n"
    assert "Agent local-0" in stack.ok("status")

    assert "Perdure is down" in stack.ok("down")
    assert "not up" in stack.ok("down")
    assert "not up" in stack.refused("status")
    assert "not up" in stack.refused("env")
    assert not (stack.home / "stack.json").exists()


def test_in_the_foreground_it_stops_when_told_to(stack: Stack) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with subprocess.Popen(
            [*stack.program, "up"], env=stack.environ, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            stack.until(stack.is_up, "the stack to be up")
            process.send_signal(number)
            said, _ = process.communicate(timeout=120)
        assert process.returncode == 0, said
        assert "Perdure is up" in said and "Traceback" not in said
        assert stack.processes() == []


def test_told_to_stop_while_it_starts_it_leaves_no_part_behind(stack: Stack) -> None:
    for _ in range(4):
        with subprocess.Popen(
            [*stack.program, "up"], env=stack.environ, stdout=subprocess.PIPE, text=True
        ) as process:
            stack.until((stack.home / "run" / "temporal.pid").exists, "a first part")
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=120)
        assert process.returncode == 0
        assert stack.processes() == []
        (stack.home / "run" / "temporal.pid").unlink()


def test_down_names_what_goes_on_running_and_up_finds_it_again(stack: Stack) -> None:
    stack.up()
    apply(stack, LONG, "-d")
    stack.until(lambda: stack.ok("logs", "long") == "begun\n", "the job")
    work = [
        process for process in psutil.process_iter(["cmdline"]) if process.info["cmdline"] == ["sleep", "73219"]
    ]
    assert work

    said = stack.ok("down")
    assert "these go on running: long (running, 1 job)" in said
    assert all(process.is_running() for process in work)

    ports = stack_ports(stack)
    stack.up()
    assert stack_ports(stack) == ports, "ports are remembered"
    assert "running" in stack.ok("ps")

    said = stack.ok("down", "--all")
    assert "stopping 1 run: long" in said
    assert not any(process.is_running() for process in work)
    assert stack.processes() == []

    stack.up()
    assert "terminated" in stack.ok("ps", "-a")


def test_a_port_that_was_taken_meanwhile_is_exchanged_and_said(stack: Stack) -> None:
    stack.up()
    before = stack_ports(stack)
    stack.ok("down")
    with socket.create_server(("127.0.0.1", before["temporal"])):
        said = stack.up()
        assert f"port {before['temporal']} is taken by another program" in said
        after = stack_ports(stack)
        assert after["temporal"] != before["temporal"] and after["ui"] == before["ui"]
        apply(stack, HELLO)


@pytest.fixture(scope="module")
def other() -> Iterator[Stack]:
    """One that is up beside a test's own."""
    with fresh() as one:
        one.up()
        yield one


def test_two_homes_live_side_by_side_and_one_uses_the_others_database(other: Stack) -> None:
    with fresh() as stack:
        url = other.described["database_url"]
        asyncio.run(_create_database(url, "mine"))
        stack.up("--database-url", url.replace("/postgres?", "/mine?"))
        assert set(stack_ports(stack).values()).isdisjoint(stack_ports(other).values())
        assert stack.is_up() and other.is_up()
        assert "postgres" not in stack.described["pids"]
        apply(stack, HELLO)
        stack.ok("down")
        stack.up()
        assert "postgres" not in stack.described["pids"], "it is remembered"
        assert "hello" in stack.ok("ps", "-a")
    assert other.is_up()


async def _create_database(url: str, name: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(f"CREATE DATABASE {name}")
    await connection.close()


def test_the_state_is_closed_to_other_users(other: Stack) -> None:
    assert other.home.stat().st_mode & 0o077 == 0
    for name in ("key", "stack.json", "state.json"):
        assert (other.home / name).stat().st_mode & 0o077 == 0
    socket_folder = Path(other.described["parts"][0]["where"])
    assert socket_folder.stat().st_mode & 0o077 == 0
    if os.geteuid() == 0:
        assert socket_folder.stat().st_uid not in (0, 65534), "neither root's nor that of jobs"


def stack_ports(stack: Stack) -> dict[str, int]:
    return json.loads((stack.home / "state.json").read_text())["ports"]
