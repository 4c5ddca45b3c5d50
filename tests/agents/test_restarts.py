"""kill -9 of any part at any moment: the job goes on, and its end and its last byte are delivered once."""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path
from uuid import UUID

import pytest

from perdure.agents.protocol import RunnerState, StopBody, TaskStatus, Terminate
from perdure.model.errors import AgentUnreachable
from tests.agents.processes import Host, eventually, job_of, new_task, start, submit


async def test_the_shim_is_killed_while_a_job_runs(here: Host) -> None:
    job = await start(here, "echo begun; sleep 1; echo over; exit 5")
    await job.printed(b"begun")
    runner = here.runner_process(job.id)
    here.kill_shim()
    assert (await job.runner.state()).state is RunnerState.RUNNING, "its runner does not need the shim"
    here.start_shim()
    assert (await (await here.shim()).task(job.id)).status is TaskStatus.RUNNING
    assert here.runner_process(job.id) == runner, "found, not started again"
    assert (await job.ended()).exit_status == 5
    assert await job.log() == b"begun\nover\n"


@pytest.mark.parametrize("pause", [0, 0.01, 0.03, 0.06])
async def test_the_shim_is_killed_while_it_starts_a_task(here: Host, pause: float) -> None:
    shim = await here.shim()
    task = new_task()
    await shim.submit_task(task)
    await asyncio.sleep(pause)
    here.kill_shim()
    here.start_shim()
    shim, runner, info = await submit(here, task)
    await runner.submit(job_of(task, "echo once"))
    await runner.run()
    await eventually(lambda: _ended(runner))
    assert (await runner.logs(0)).content == b"once\n"
    assert (await shim.task(task.id)).runner_socket == info.runner_socket


async def test_the_shim_is_killed_while_it_ends_a_task(here: Host) -> None:
    job = await start(here, "trap '' TERM; echo ready; while :; do sleep 0.1; done")
    await job.printed(b"ready")
    wish = Terminate(termination_reason="terminated_by_user", timeout=2)
    ending = asyncio.create_task(job.shim.terminate(job.id, wish))
    await eventually(lambda: _stop_requested(job.runner))
    here.kill_shim()
    await asyncio.wait([ending])
    here.start_shim()
    shim = await here.shim()
    info = await eventually(lambda: _terminated(shim, job.id))
    assert info.termination_reason == "terminated_by_user"
    assert (await job.ended()).reason == "terminated_by_user"


async def test_the_shim_is_killed_while_the_job_ends(here: Host) -> None:
    job = await start(here, "sleep 0.3; echo over; exit 7")
    here.kill_shim()
    await asyncio.sleep(0.5)
    here.start_shim()
    await here.shim()
    assert (await job.ended()).exit_status == 7
    assert await job.log() == b"over\n"


async def test_the_runner_is_killed_while_a_job_runs(here: Host) -> None:
    job = await start(here, "echo begun; sleep 1; echo over; exit 6")
    await job.printed(b"begun")
    for _ in range(2):
        killed = here.runner_process(job.id)
        here.kill_runner(job.id)
        await eventually(lambda killed=killed: here.runner_process(job.id) != killed)
    assert (await job.ended()).exit_status == 6
    assert await job.log() == b"begun\nover\n"


async def test_the_runner_is_killed_while_the_job_ends(here: Host) -> None:
    for pause in (0.0, 0.02, 0.04, 0.06):
        job = await start(here, "echo x; sleep 0.15; echo over; exit 8")
        await job.printed(b"x")
        await asyncio.sleep(0.1 + pause)
        here.kill_runner(job.id)
        assert (await job.ended()).exit_status == 8
        assert await job.log() == b"x\nover\n"


@pytest.mark.parametrize("pause", [0, 0.005, 0.01, 0.02, 0.03, 0.05])
async def test_the_runner_is_killed_while_it_starts_the_job(here: Host, pause: float) -> None:
    task = new_task()
    shim, runner, _ = await submit(here, task)
    await runner.submit(job_of(task, "echo once"))
    running = asyncio.create_task(runner.run())
    await asyncio.sleep(pause)
    here.kill_runner(task.id)
    await asyncio.wait([running])
    await eventually(lambda: _run_again(runner))
    await eventually(lambda: _ended(runner))
    state, page = await runner.state(), await runner.logs(0)
    assert (state.reason, page.content) == ("done_by_runner", b"once\n")
    assert (await shim.task(task.id)).status is TaskStatus.RUNNING


async def test_a_stop_survives_the_runner(here: Host) -> None:
    job = await start(here, "trap '' TERM; echo ready; while :; do sleep 0.1; done")
    await job.printed(b"ready")
    await job.runner.stop(StopBody(grace=1, reason="terminated_by_user"))
    here.kill_runner(job.id)
    assert (await job.ended()).reason == "terminated_by_user"


async def test_all_parts_are_killed_and_the_job_goes_on(here: Host) -> None:
    job = await start(here, "echo begun; sleep 1; echo over; exit 9")
    await job.printed(b"begun")
    here.kill_shim()
    here.kill_runner(job.id)
    await asyncio.sleep(0.3)
    here.start_shim()
    assert (await job.ended()).exit_status == 9
    assert await job.log() == b"begun\nover\n"


async def test_the_zygote_is_killed_and_jobs_still_start(here: Host) -> None:
    assert here.process is not None
    children = Path(f"/proc/{here.process.pid}/task/{here.process.pid}/children").read_text().split()
    for pid in children:
        assert b"zygote" in Path(f"/proc/{pid}/cmdline").read_bytes()
        os.kill(int(pid), 9)
    assert await (await start(here, "echo fine")).log() == b"fine\n"


async def test_the_keeper_is_killed_and_nothing_of_the_job_is_left(here: Host) -> None:
    job = await start(here, "echo ready; setsid sleep 12345 & sleep 12345")
    await job.printed(b"ready")
    here.keeper_process(job.id).kill()
    state = await job.ended()
    assert state.reason == "executor_error"
    assert "keeper" in state.message
    await eventually(lambda: not _sleeping(b"12345"))


async def test_the_keeper_is_killed_where_there_is_no_sandbox(bare: Host) -> None:
    job = await start(bare, "echo ready; setsid sleep 12346 & sleep 12346")
    await job.printed(b"ready")
    bare.keeper_process(job.id).kill()
    assert (await job.ended()).reason == "executor_error"
    await eventually(lambda: not _sleeping(b"12346"))


async def test_the_keeper_is_killed_and_the_jobs_own_variables_hide_nothing(bare: Host) -> None:
    env = {"PERDURE_JOB_ID": "mine", "DSTACK_JOB_ID": "mine", "_PERDURE_TASK": "mine"}
    job = await start(bare, "echo ready $PERDURE_JOB_ID; setsid sleep 12347 & sleep 12347", env=env)
    await job.printed(b"ready mine")
    bare.keeper_process(job.id).kill()
    assert (await job.ended()).reason == "executor_error"
    assert not _sleeping(b"12347")


async def test_max_duration_is_measured_from_the_first_start(here: Host) -> None:
    job = await start(here, "echo ready; sleep 100", max_duration=1.5, stop_grace=0.5)
    await job.printed(b"ready")
    started = json.loads((here.task_folder(job.id) / "job.json").read_text())["started"]
    for _ in range(3):
        await asyncio.sleep(0.3)
        here.kill_runner(job.id)
    assert (await job.ended()).reason == "max_duration_exceeded"
    ended = json.loads((here.task_folder(job.id) / "job.json").read_text())
    assert ended["started"] == started, "restarts did not begin it anew"


async def test_after_a_reboot_a_job_is_lost_and_its_log_is_not(here: Host) -> None:
    job = await start(here, "echo begun; sleep 100")
    await job.printed(b"begun")
    _reboot(here, job.id)
    shim = await here.shim()
    info = await eventually(lambda: _terminated(shim, job.id))
    assert info.termination_reason == "executor_error"
    assert "restarted" in info.termination_message
    state = await job.ended()
    assert (state.reason, "restarted" in state.message) == ("executor_error", True)
    assert await job.log() == b"begun\n"


async def test_a_result_that_was_on_disk_is_delivered_after_a_reboot(here: Host) -> None:
    job = await start(here, "echo over; exit 3")
    await job.ended()
    _reboot(here, job.id)
    shim = await here.shim()
    await eventually(lambda: _running(shim, job.id))
    assert (await job.ended()).exit_status == 3
    assert await job.log() == b"over\n"


async def test_a_task_of_another_boot_is_not_taken_for_a_process_of_this_one(here: Host) -> None:
    """Process ids are used again: whoever has that of an old runner or keeper now is left alone."""
    job = await start(here, "echo begun; sleep 100")
    await job.printed(b"begun")
    bystander = await asyncio.create_subprocess_exec("sleep", "100")
    _reboot(here, job.id, pid=bystander.pid)
    shim = await here.shim()
    await eventually(lambda: _terminated(shim, job.id))
    await shim.remove(job.id)
    assert bystander.returncode is None
    bystander.terminate()
    await bystander.wait()


async def test_only_one_shim_serves_a_folder(here: Host) -> None:
    first = here.process
    here.start_shim()
    assert here.process is not None
    assert await asyncio.to_thread(here.process.wait, 60) != 0
    here.process = first
    await (await here.shim()).healthcheck()


def _reboot(here: Host, task_id: UUID, pid: int | None = None) -> None:
    """As a power cut would leave it: no process, and every record of another boot."""
    folder = here.task_folder(task_id)
    here.kill_shim()
    here.kill_runner(task_id)
    here.keeper_process(task_id).kill()
    for path in folder.glob("*.json"):
        text = path.read_text()
        text = re.sub(r'("boot": ?)"[^"]*"', r'\1"another"', text)
        if pid is not None:
            text = re.sub(r'("pid": ?)\d+', rf"\g<1>{pid}", text)
        path.write_text(text)
    here.start_shim()


async def _terminated(shim, task_id: UUID):
    info = await shim.task(task_id)
    return info if info.status is TaskStatus.TERMINATED else None


async def _running(shim, task_id: UUID) -> bool:
    return (await shim.task(task_id)).status is TaskStatus.RUNNING


async def _ended(runner) -> bool:
    try:
        return (await runner.state()).state is RunnerState.ENDED
    except AgentUnreachable:
        return False


async def _stop_requested(runner) -> bool:
    return (await runner.state()).stop_requested


async def _run_again(runner) -> bool:
    try:
        await runner.run()
    except AgentUnreachable:
        return False
    return True


def _sleeping(word: bytes) -> bool:
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                if (path / "cmdline").read_bytes() == b"sleep\0" + word + b"\0":
                    return True
            except OSError:
                continue
    return False
