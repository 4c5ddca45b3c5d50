"""Secrets on a whole stack: where they reach, and that they are nowhere else (invariant 12)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from perdure.backends.places import outside
from tests.spec.test_pages import blocks, write_files
from tests.support.stack import Stack, fresh

FIRST, SECOND, GONE = "first-hunter2-\u00fc", "second-hunter2-\u00fc", "gone-hunter2"
DOCS = Path(__file__).parents[2] / "docs/secrets.md"
HASH = 'printf %s "$KEY" | sha256sum | cut -c1-64'
SMALL = {"cpu": "1..", "memory": "0.1GB..", "disk": "1GB.."}


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with fresh(environ={"PERDURE_TIMING": json.dumps({"retry_backoff": [0.3]})}) as one:
        one.up()
        one.home.parent.chmod(0o755)
        yield one


class Gate:
    """What a job waits for."""

    def __init__(self, stack: Stack, name: str):
        self.path = stack.home.parent / f"{name}.gate"
        self.waiting = f"while [ ! -e {self.path} ]; do sleep 0.05; done"

    def open(self) -> None:
        self.path.touch()


def submit(stack: Stack, name: str, *commands: str, options: tuple[str, ...] = ("-d",), **more: object) -> str:
    path = stack.home.parent / f"{name}.yml"
    configuration = {"type": "task", "name": name, "commands": commands, "resources": SMALL, **more}
    path.write_text(json.dumps(configuration))
    done = stack.run("apply", "-f", str(path), "-y", *options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ended(stack: Stack, name: str) -> dict[str, Any]:
    def run() -> dict[str, Any]:
        return json.loads(stack.ok("run", "get", name, "--json"))

    stack.until(lambda: run()["ended_at"], what=f"{name} to end")
    return run()


def sha256(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()


def test_a_job_is_given_the_value_of_now_at_each_try(stack: Stack):
    gate = Gate(stack, "again")
    assert "is set" in stack.run("secret", "set", "my-key", FIRST).stderr
    assert stack.ok("secret", "get", "my-key") == f"{FIRST}\n"
    submit(
        stack,
        "again",
        HASH,
        f"if [ $({HASH}) = {sha256(SECOND)} ]; then exit; fi",
        gate.waiting,
        "exit 1",
        env={"KEY": "${{ secrets.my-key }}"},
        retry={"on_events": ["error"], "max_attempts": 3},
    )
    stack.until(lambda: sha256(FIRST) in stack.ok("logs", "again"), what="the first try")
    piped = subprocess.run(
        [*stack.program, "secret", "set", "my-key", "-"],
        input=f"{SECOND}\n",
        env=stack.environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "is changed" in piped.stderr
    gate.open()
    assert ended(stack, "again")["status"] == "done"
    assert stack.ok("logs", "again", "--attempt", "1") == f"{sha256(SECOND)}\n"


def test_a_run_that_needs_a_secret_there_is_not_is_refused(stack: Stack):
    path = stack.home.parent / "unknown.yml"
    env = {"KEY": "${{ secrets.my-kay }}"}
    path.write_text(json.dumps({"type": "task", "name": "unknown", "commands": ["true"], "env": env}))
    said = stack.refused("apply", "-f", str(path), "-y")
    assert "my-kay" in said
    assert "env.KEY" in said
    assert "there is no run unknown" in stack.refused("run", "get", "unknown")


def test_a_secret_deleted_before_its_run_starts_fails_the_run_and_it_is_not_tried_again(stack: Stack):
    fleet = stack.home.parent / "narrow.yml"
    fleet.write_text(json.dumps({"type": "fleet", "name": "narrow", "nodes": "0..1"}))
    stack.ok("apply", "-f", str(fleet), "-y")
    gate = Gate(stack, "holder")
    submit(stack, "holder", gate.waiting, fleets=["narrow"])
    stack.ok("secret", "set", "short-lived", GONE)
    submit(
        stack,
        "waiter",
        HASH,
        fleets=["narrow"],
        env={"KEY": "x${{ secrets.short-lived }}"},
        retry={"on_events": ["no-capacity", "error", "interruption"], "duration": "1h"},
    )
    stack.ok("secret", "delete", "short-lived", "-y")
    gate.open()
    run = ended(stack, "waiter")
    assert run["status"] == "failed"
    (job,) = run["jobs"]
    assert (job["status"], job["reason"]) == ("terminated", "terminated_by_server")
    for message in (run["message"], job["message"]):
        assert "it needs the secret short-lived, which project main does not have (any more)" in message


def test_no_value_is_anywhere_but_where_it_belongs(stack: Stack):
    """Runs last: in nothing that the stack keeps, on the way or at rest, is a value that the tests above set."""
    assert "hunter2" not in stack.ok("secret", "--json") + stack.ok("ps", "-a", "--json")
    (listed,) = json.loads(stack.ok("secret", "--json"))["secrets"]
    assert listed["name"] == "my-key"
    assert found_in(asyncio.run(everything_in(stack.described["database_url"]))) == []
    stack.ok("down", "--all")  # and all that was in memory is on the disk
    kept = [stack.home, *outside(stack.home)]
    files = [path for folder in kept for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    assert any(path.is_relative_to(stack.home / "temporal") for path in files)
    assert any("postgres" in path.parts and "base" in path.parts for path in files)
    assert [str(path) for path in files if found_in(path.read_bytes())] == []
    stack.up()
    assert stack.ok("secret", "get", "my-key") == f"{SECOND}\n"


def test_the_first_commands_of_its_page_work_as_they_stand_there(stack: Stack):
    block = DOCS.read_text().split("```\n")[1]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    script = ["bash", "-eu", "-o", "pipefail", "-c", block]
    done = subprocess.run(script, env=stack.environ | {"PATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("\nhf_Bq3example\n")


def test_every_command_of_the_page_on_resolving_works_with_a_worker(stack: Stack, tmp_path: Path):
    write_files("resolving.md", tmp_path)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    script = ["bash", "-eu", "-o", "pipefail", "-c", "\n".join(blocks("resolving.md"))]
    environ = stack.environ | {"PATH": path}
    done = subprocess.run(script, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "not known" not in done.stderr
    shown = [line.split(maxsplit=1)[0] for line in done.stdout.splitlines() if line.strip()]
    assert {"resources.memory", "retry.duration", "idle_duration"} <= {*shown}
    assert json.loads((tmp_path / "explained.json").read_text())["profile"] == "large"


def found_in(content: bytes) -> list[str]:
    """Which values are in there: plain, as JSON has them, as base64 at any offset, or as Postgres prints bytes."""
    return [value for value in (FIRST, SECOND, GONE) if any(form in content for form in forms(value))]


def forms(value: str) -> list[bytes]:
    plain = value.encode()
    # Of three bytes that base64 writes as four letters, the first and the last three may be mixed with others.
    shifted = [b64encode(b"\0" * lead + plain)[4:-4] for lead in range(3)]
    return [plain, json.dumps(value)[1:-1].encode(), plain.hex().encode(), *shifted]


async def everything_in(url: str) -> bytes:
    """Every row of every table, as text."""
    database = await asyncpg.connect(url)
    try:
        names = await database.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        tables = [await database.fetch(f'SELECT t::text AS row FROM "{name}" t') for (name,) in names]
    finally:
        await database.close()
    rows = [row["row"] for table in tables for row in table]
    assert any("my-key" in row for row in rows), "the secrets are among them"
    return "\n".join(rows).encode()


def test_the_search_itself_finds_what_it_should():
    assert all(found_in(b"..." + form + b"...") for form in forms(FIRST))
    assert found_in(b64encode(b"x" + FIRST.encode() + b"y")) == [FIRST]
    assert found_in(b64encode(b"xy" + SECOND.encode() + b"y")) == [SECOND]
    assert found_in(b64encode(b"xyz" + GONE.encode() + b"y")) == [GONE]
    assert found_in(b"nothing") == []
