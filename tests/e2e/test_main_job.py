"""From ``perdure apply`` to the last log line, on a real embedded stack, through the real program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest

from tests.support.stack import Stack, fresh

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = {"cpu": "1..", "memory": "0.1GB..", "disk": "1GB.."}


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """One for all of these tests; nothing of it may be left at the end."""
    with fresh(environ={"PERDURE_TIMING": json.dumps({"retry_backoff": [0.3], "stop_grace": 30.0})}) as one:
        one.up()
        one.home.parent.chmod(0o755)
        yield one


def write(stack: Stack, name: str, *commands: str, **more: object) -> str:
    """A task's configuration in a file."""
    path = stack.home.parent / f"{name}.yml"
    configuration = {"type": "task", "name": name, "commands": commands, "resources": SMALL, **more}
    path.write_text(json.dumps(configuration))
    return str(path)


def one_run(stack: Stack, name: str) -> dict[str, Any]:
    return json.loads(stack.ok("run", "get", name, "--json"))


def settled(stack: Stack) -> None:
    """Every invariant holds."""
    checks = json.loads(stack.ok("doctor", "--json"))["checks"]
    assert all(check["ok"] for check in checks), checks


def test_hello_is_planned_run_and_shown_to_its_last_line(stack: Stack):
    done = stack.run("apply", "-f", str(EXAMPLES / "hello/.perdure.yml"), "-y")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].startswith("Hello from hello")
    assert done.stdout.splitlines()[1:] == ["step 1 of 3", "step 2 of 3", "step 3 of 3", "Done."]
    assert "Resources" in done.stderr
    assert "local" in done.stderr
    assert "Run hello done after" in done.stderr
    assert stack.ok("logs", "hello") == done.stdout
    settled(stack)


def test_two_nodes_find_each_other(stack: Stack):
    done = stack.run("apply", "-f", str(EXAMPLES / "two-nodes/.perdure.yml"), "-y")
    assert done.returncode == 0, done.stderr
    assert "rank 1 says hello" in done.stdout
    assert stack.ok("logs", "two-nodes", "--job", "1") == "rank 1 hears: welcome\n"
    run = one_run(stack, "two-nodes")
    assert [job["status"] for job in run["jobs"]] == ["done", "done"]
    settled(stack)


def test_a_master_that_waits_for_its_workers_is_followed_and_gives_its_code(stack: Stack):
    script = "if [ $PERDURE_NODE_RANK = 0 ]; then echo mpirun; else sleep 500; fi"
    order = {"nodes": 2, "startup_order": "workers-first", "stop_criteria": "master-done"}
    done = stack.run("apply", "-f", write(stack, "workers-first", script, **order), "-y")
    assert (done.returncode, done.stdout) == (0, "mpirun\n"), done.stderr
    assert "exit code 0." in done.stderr
    run = one_run(stack, "workers-first")
    assert (run["exit_status"], run["jobs"][1]["reason"]) == (0, "terminated_by_server")
    settled(stack)


def test_a_job_that_fails_gives_its_code_and_reason(stack: Stack):
    done = stack.run("apply", "-f", write(stack, "fails", "echo bad; exit 7"), "-y")
    assert done.returncode == 1
    assert done.stdout == "bad\n"
    assert "exit code 7" in done.stderr
    assert done.stderr.count("exited with status 7") == 1
    run = one_run(stack, "fails")
    assert (run["status"], run["jobs"][0]["exit_status"]) == ("failed", 7)


def test_a_fleet_is_made_changed_and_deleted_with_its_instances(stack: Stack):
    path = stack.home.parent / "pool.yml"
    fleet = {"type": "fleet", "name": "pool", "nodes": "1..2"}
    path.write_text(json.dumps(fleet))
    assert "pool, new" in stack.run("apply", "-f", str(path), "-y").stderr
    stack.until(lambda: "idle" in stack.ok("fleet", "get", "pool"), "an instance")
    path.write_text(json.dumps(fleet | {"nodes": "0..3"}))
    assert "1..2 → 0..3" in stack.run("apply", "-f", str(path), "-y").stderr
    stack.ok("fleet", "delete", "pool", "-y")
    assert "no fleet pool" in stack.refused("fleet", "get", "pool")
    path.write_text(json.dumps({"type": "fleet", "name": "pool"}))
    assert "nodes" in stack.refused("apply", "-f", str(path), "-y")
    settled(stack)


def test_a_run_that_finds_no_capacity_names_the_nearest_miss_and_lists_the_rest(stack: Stack):
    greedy = {"resources": SMALL | {"cpu": "1000.."}}
    done = stack.run("apply", "-f", write(stack, "greedy", "true", **greedy), "-y")
    assert done.returncode == 1
    run = one_run(stack, "greedy")
    assert run["message"].startswith("no capacity for an instance: ")
    assert run["message"].count("wanted 1000..") == 1
    assert [failure["why"] for failure in run["failures"]]
    assert "wanted 1000.." in stack.ok("ps", "-a", "-n", "1")


def test_every_read_has_json(stack: Stack):
    stack.ok("apply", "-f", write(stack, "jason", "true"), "-y")
    assert json.loads(stack.ok("ps", "-a", "--json"))["runs"][0]["name"] == "jason"
    assert json.loads(stack.ok("fleet", "--json"))["fleets"][0]["name"] == "local"
    assert json.loads(stack.ok("offer", "--json"))["total"] >= 1
    assert one_run(stack, "jason")["configuration"]["name"] == "jason"
    run_id = one_run(stack, "jason")["run_id"]
    assert json.loads(stack.ok("run", "get", "--id", run_id, "--json"))["name"] == "jason"


def test_a_line_is_shown_before_the_next_one_is_printed(stack: Stack):
    gate = stack.home.parent / "gate"
    wait = f"until [ -e {gate} ]; do sleep 0.05; done"
    stack.ok("apply", "-f", write(stack, "live", "echo one", wait, "echo two"), "-y", "-d")
    follower = subprocess.Popen(
        [*stack.program, "logs", "live", "-f"], env=stack.environ, stdout=subprocess.PIPE, text=True
    )
    assert follower.stdout is not None
    assert follower.stdout.readline() == "one\n"
    gate.touch()
    assert follower.stdout.readline() == "two\n"
    assert follower.stdout.read() == ""
    assert follower.wait(60) == 0


def test_output_is_shown_byte_for_byte(stack: Stack):
    script = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 5000 + b'\\r\\xff no newline')"
    path = write(stack, "bytes", f"python3 -c {json.dumps(script)}")
    done = subprocess.run(
        [*stack.program, "apply", "-f", path, "-y"], env=stack.environ, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == bytes(range(256)) * 5000 + b"\r\xff no newline"


def test_attempts_are_kept_apart_and_followed_one_after_the_other(stack: Stack):
    retry = {"on_events": ["error"], "duration": "1h", "max_attempts": 3}
    done = stack.run("apply", "-f", write(stack, "again", "echo try; exit 5", retry=retry), "-y")
    assert done.returncode == 1
    assert done.stdout == "try\ntry\ntry\n"
    assert "attempt 1" in done.stderr
    assert "attempt 2" in done.stderr
    assert stack.ok("logs", "again", "--attempt", "1") == "try\n"
    assert stack.ok("logs", "again") == "try\n"
    assert "has no attempt 3" in stack.refused("logs", "again", "--attempt", "3")


def test_stop_lets_a_job_save_and_abort_ends_one_that_will_not(stack: Stack):
    wait = "echo ready; while true; do sleep 0.1; done"
    for name, trap, options in (("stopped", "echo saving; exit 0", []), ("aborted", "", ["--abort"])):
        stack.ok("apply", "-f", write(stack, name, f"trap '{trap}' TERM; {wait}"), "-y", "-d")
        stack.until(lambda name=name: stack.ok("logs", name) == "ready\n", "the job")
        stack.ok("stop", name, "-y", *options)
        assert one_run(stack, name)["status"] == "terminated"
        assert one_run(stack, name)["reason"] == f"{name}_by_user"
    assert "saving" in stack.ok("logs", "stopped")
    settled(stack)


def test_code_arrives_and_runs(stack: Stack):
    folder = stack.home.parent / "code"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep/run me.sh").write_text("#!/bin/sh\necho ran in $(basename $PWD) with $(cat data)\n")
    (folder / "deep/run me.sh").chmod(0o755)
    (folder / "data").write_bytes(b"bytes")
    (folder / "link").symlink_to("data")
    (folder / "left.log").write_text("x")
    (folder / ".gitignore").write_text("*.log\n")
    path = write(stack, "coded", "cd app && './deep/run me.sh' && cat link && ls *.log", files=["code:app"])
    done = stack.run("apply", "-f", path, "-y")
    assert "ran in app with bytes\nbytes" in done.stdout
    assert "left out: left.log" in done.stderr
    assert done.returncode == 1


def test_values_from_here_reach_the_job_and_nothing_else(stack: Stack):
    secret = "s3cret-never-in-history"
    path = write(stack, "sealed", "echo $TOKEN | rev", "echo $GIVEN", env=["TOKEN"])
    done = stack.run("apply", "-f", path, "-y", "-e", f"GIVEN={secret}", TOKEN=secret)
    assert done.stdout == f"{secret[::-1]}\n{secret}\n", done.stderr
    for found in (stack.ok("run", "get", "sealed", "--json"), history(stack, "run/main/sealed")):
        assert "sealed" in found
        assert secret not in found
    for path in (stack.home / "logs").iterdir():
        assert secret not in path.read_text(errors="replace")


def test_of_two_at_once_one_is_refused(stack: Stack):
    path = write(stack, "twice", "sleep 60")
    both = [
        subprocess.Popen(
            [*stack.program, "apply", "-f", path, "-y", "-d"], env=stack.environ, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    said = [one.communicate(timeout=90)[1] for one in both]
    assert sorted(one.returncode for one in both) == [0, 1], said
    assert "perdure stop twice" in "".join(said) or "--force" in "".join(said)
    assert "already" in stack.refused("apply", "-f", path, "-y")
    stack.ok("stop", "twice", "-x", "-y")
    stack.ok("apply", "-f", write(stack, "twice", "echo again"), "-y")
    assert stack.ok("logs", "twice") == "again\n"


def test_ctrl_c_detaches_or_stops(stack: Stack):
    path = write(stack, "asked", "echo begun; sleep 600")
    program, *arguments = stack.program
    child = pexpect.spawn(
        program,
        [*arguments, "apply", "-f", path],
        env=stack.environ,
        encoding="utf-8",
        timeout=120,
        dimensions=(50, 120),
    )
    child.expect("Submit the run asked")
    child.sendline("y")
    child.expect("begun")
    child.sendintr()
    child.expect("Stop run asked, detach from it, or continue")
    child.sendline("d")
    child.expect("Detached")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert one_run(stack, "asked")["status"] == "running"

    child = pexpect.spawn(
        program, [*arguments, "apply", "-f", path], env=stack.environ, encoding="utf-8", timeout=120
    )
    child.expect("already running, with this same configuration")
    child.sendline("s")
    child.expect("begun")
    child.sendintr()
    child.expect("detach from it")
    child.sendline("s")
    child.expect("Ctrl-C again aborts")
    child.expect("Run asked terminated")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 1
    settled(stack)


def test_ctrl_c_at_the_question_submits_nothing(stack: Stack):
    path = write(stack, "unsure", "true")
    program, *arguments = stack.program
    child = pexpect.spawn(
        program, [*arguments, "apply", "-f", path], env=stack.environ, encoding="utf-8", timeout=120
    )
    child.expect("Submit the run unsure")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130
    assert "unsure" not in stack.ok("ps", "-a", "--json")


def test_a_run_without_capacity_says_what_was_tried(stack: Stack):
    done = stack.run("apply", "-f", write(stack, "huge", "true", resources={"cpu": "9999.."}), "-y")
    assert done.returncode == 1
    assert "No offers." in done.stderr
    assert "wanted 9999.." in done.stderr
    assert "Run huge failed" in done.stderr


def test_no_worker_is_told(stack: Stack):
    os.kill(stack.pid("supervisor"), signal.SIGSTOP)
    try:
        worker = stack.kill("worker")
        assert "no worker is running" in stack.refused("ps")
    finally:
        os.kill(stack.pid("supervisor"), signal.SIGCONT)
    stack.wait_until_up_again("worker", worker)
    stack.ok("ps")


def history(stack: Stack, workflow_id: str) -> str:
    """All that Temporal knows of a workflow."""
    binary = Path(sys.executable).parent / "temporal"
    return subprocess.run(
        [
            binary,
            "workflow",
            "show",
            "-w",
            workflow_id,
            "--output",
            "json",
            "--address",
            stack.described["temporal"],
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
