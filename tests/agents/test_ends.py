"""How a job ends, of itself or because it was told to, and that the end is decided once."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from perdure.agents.protocol import RunnerState, StopBody, TaskStatus, Terminate
from tests.agents.processes import Host, Started, eventually, job_of, new_task, start, submit

DAEMON = (
    "import os, signal, sys, time\n"
    "if os.fork(): os.wait(); time.sleep(1000)\n"
    "os.setsid()\n"
    "if os.fork(): os._exit(0)\n"
    "for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(name, signal.SIG_IGN)\n"
    "os.environ.clear()\n"
    "print('forked twice', flush=True)\n"
    "while True: time.sleep(0.1)\n"
)


@pytest.mark.parametrize(
    ("script", "status", "reason", "message"),
    [
        ("exit 0", 0, "done_by_runner", ""),
        ("exit 1", 1, "container_exited_with_error", ""),
        ("exit 255", 255, "container_exited_with_error", ""),
        ("kill -9 $$", 137, "container_exited_with_error", "killed by SIGKILL"),
        ("kill -SEGV $$", 139, "container_exited_with_error", "killed by SIGSEGV"),
    ],
)
async def test_an_exit_status_is_told_as_a_shell_tells_it(
    here: Host, script: str, status: int, reason: str, message: str
) -> None:
    state = await (await start(here, script)).ended()
    assert (state.exit_status, state.reason) == (status, reason)
    assert state.message == message


@pytest.mark.parametrize(
    ("command", "status", "message"),
    [
        (["no-such-program", "x"], 127, "command not found: no-such-program"),
        (["/no/such/program"], 127, "command not found: /no/such/program"),
        (["/etc/passwd"], 126, "Permission denied"),
        (["/"], 126, "Permission denied"),
    ],
)
async def test_a_command_that_cannot_run_says_why_in_its_state_and_its_log(
    here: Host, command: list[str], status: int, message: str
) -> None:
    job = await start(here, command)
    state = await job.ended()
    assert (state.exit_status, state.reason) == (status, "container_exited_with_error")
    assert message in state.message
    assert message.encode() in await job.log()


async def test_a_variable_too_long_for_the_host_is_named(here: Host) -> None:
    state = await (await start(here, "true", env={"BIG": "x" * 200_000})).ended()
    assert state.exit_status == 126
    assert "BIG has 195 KiB" in state.message
    assert "limit" in state.message


async def test_an_environment_too_large_for_the_host_is_told(here: Host) -> None:
    words = ["/bin/true", *("x" * 1000 for _ in range(2))]
    state = await (await start(here, words, env={f"V{i}": "x" * 100_000 for i in range(9)})).ended()
    assert state.exit_status == 0, "0.9 MB is fine"


async def test_a_stop_is_never_a_success_whatever_the_exit_status(here: Host) -> None:
    job = await start(here, "trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done")
    await job.printed(b"ready")
    await job.runner.stop(StopBody(reason="terminated_by_user"))
    state = await job.ended()
    assert (state.reason, state.stop_requested, state.exit_status) == ("terminated_by_user", True, 0)


async def test_stop_and_exit_at_the_same_moment_are_decided_once(here: Host) -> None:
    for _ in range(12):
        job = await start(here, "sleep 0.1")
        await asyncio.sleep(0.1 + random.uniform(-0.03, 0.05))
        first = await job.runner.stop(StopBody(reason="terminated_by_user"))
        state = await job.ended()
        assert state.stop_requested == (state.reason == "terminated_by_user")
        assert state.reason in ("done_by_runner", "terminated_by_user")
        if first.state is RunnerState.ENDED:
            assert state == first
        assert (await job.runner.stop(StopBody(reason="scaled_down"))).reason == state.reason


async def test_a_job_stopped_before_it_runs_never_runs(here: Host) -> None:
    task = new_task()
    _, runner, _ = await submit(here, task)
    await runner.submit(job_of(task, f"touch {here.work}/ran"))
    assert (await runner.stop(StopBody(reason="terminated_by_user"))).state is RunnerState.ENDED
    await runner.run()
    state = await runner.state()
    assert (state.reason, state.exit_status, state.log_complete) == ("terminated_by_user", None, True)
    assert not (here.task_folder(task.id) / "keeper.json").exists()


async def test_a_stop_while_it_starts_ends_it(here: Host) -> None:
    for pause in (0, 0.005, 0.01, 0.015, 0.02, 0.03):
        task = new_task()
        _, runner, _ = await submit(here, task)
        await runner.submit(job_of(task, "sleep 100"))
        running = asyncio.create_task(runner.run())
        await asyncio.sleep(pause)
        await runner.stop(StopBody(grace=0.2, reason="terminated_by_user"))
        state = await asyncio.wait_for(Started(here, await here.shim(), task, None, runner).ended(), 60)  # type: ignore[arg-type]
        assert state.reason == "terminated_by_user"
        await running


async def test_the_stop_signal_reaches_the_whole_tree_and_is_the_jobs_own(here: Host) -> None:
    script = (
        "trap 'echo parent; wait; exit 3' USR1; "
        "sh -c \"trap 'echo child; exit' USR1; echo ready; while :; do sleep 0.05; done\" & "
        "while :; do sleep 0.05; done"
    )
    job = await start(here, script, stop_signal="SIGUSR1")
    await job.printed(b"ready")
    await job.runner.stop(StopBody(grace=10))
    state = await job.ended()
    assert state.exit_status == 3
    assert {b"ready", b"parent", b"child"} <= set((await job.log()).split())


async def test_double_forks_that_ignore_every_signal_are_killed(here: Host) -> None:
    job = await start(here, ["/usr/bin/env", "python3", "-c", DAEMON])
    await job.printed(b"forked twice")
    await job.runner.stop(StopBody(grace=0.3, reason="terminated_by_user"))
    state = await job.ended()
    assert state.reason == "terminated_by_user"
    await eventually(lambda: not _alive(b"forked twice"))


async def test_what_runs_in_the_background_ends_with_the_main_process(here: Host) -> None:
    job = await start(here, f"setsid sh -c 'sleep 1; echo late; touch {here.work}/late' & echo over")
    assert (await job.ended()).exit_status == 0
    assert await job.log() == b"over\n"
    await eventually(lambda: not _alive(b"echo late"))


async def test_without_a_sandbox_everything_is_killed_as_well(bare: Host) -> None:
    assert (await (await bare.shim()).healthcheck()).sandbox == "none"
    job = await start(bare, ["/usr/bin/env", "python3", "-c", DAEMON])
    await job.printed(b"forked twice")
    await job.runner.stop(StopBody(grace=0.3, reason="terminated_by_user"))
    assert (await job.ended()).reason == "terminated_by_user"
    assert not _alive(b"forked twice")
    job = await start(bare, "setsid sh -c 'sleep 1; echo late' & echo over; exit 4")
    assert (await job.ended()).exit_status == 4
    assert not _alive(b"echo late")
    job = await start(bare, ["no-such-program"])
    assert (await job.ended()).exit_status == 127


async def test_a_second_stop_shortens_the_grace(here: Host) -> None:
    job = await start(here, "trap '' TERM; echo ready; while :; do sleep 0.1; done")
    await job.printed(b"ready")
    await job.runner.stop(StopBody(grace=600, reason="terminated_by_user"))
    assert (await job.runner.state()).state is RunnerState.RUNNING
    await job.runner.stop(StopBody(grace=0, reason="aborted_by_user"))
    state = await asyncio.wait_for(job.ended(), 60)
    assert (state.reason, state.exit_status) == ("terminated_by_user", 137)


async def test_a_stop_without_grace_kills_and_sends_nothing_before(here: Host) -> None:
    job = await start(here, "trap 'echo heard; exit 0' TERM; echo ready; while :; do sleep 0.05; done")
    await job.printed(b"ready")
    await job.runner.stop(StopBody(grace=0, reason="aborted_by_user"))
    state = await job.ended()
    assert (state.reason, state.exit_status) == ("aborted_by_user", 137)
    assert await job.log() == b"ready\n"


async def test_max_duration_ends_it_with_its_own_reason(here: Host) -> None:
    job = await start(here, "trap '' TERM; while :; do sleep 0.1; done", max_duration=0.5, stop_grace=0.2)
    state = await asyncio.wait_for(job.ended(), 60)
    assert (state.reason, state.stop_requested) == ("max_duration_exceeded", True)


async def test_terminate_ends_a_running_job_and_keeps_the_end_of_its_log(here: Host) -> None:
    job = await start(here, "trap 'echo goodbye; exit 0' TERM; echo ready; while :; do sleep 0.05; done")
    await job.printed(b"ready")
    wish = Terminate(termination_reason="terminated_by_user", termination_message="enough", timeout=10)
    info = await job.shim.terminate(job.id, wish)
    assert (info.status, info.termination_reason, info.termination_message) == (
        TaskStatus.TERMINATED,
        "terminated_by_user",
        "enough",
    )
    assert (await job.log()).endswith(b"goodbye\n")
    assert (await job.runner.state()).reason == "terminated_by_user"


def _alive(words: bytes) -> bool:
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                if words in (path / "cmdline").read_bytes():
                    return True
            except OSError:
                continue
    return False
