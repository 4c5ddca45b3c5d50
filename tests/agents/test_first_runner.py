"""A runner that dies before it takes calls is started again: nothing of the user's has run yet."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from pathlib import Path

from perdure.agents.protocol import TaskStatus
from tests.agents.processes import Host, eventually, job_of, new_task, submit


async def test_a_runner_killed_while_it_starts_is_started_again(here: Host) -> None:
    task, shim = new_task(), await here.shim()
    description = _replace_by_a_pipe(here)
    await shim.submit_task(task)
    await eventually(lambda: (here.task_folder(task.id) / "runner.json").exists())
    description.rename(here.folder / "instance.json")
    here.kill_runner(task.id)
    _, runner, _ = await submit(here, task)
    await runner.submit(job_of(task, "echo once"))
    await runner.run()
    assert (await runner.logs(0, wait=20)).content == b"once\n"


async def test_a_runner_killed_at_every_start_ends_the_task_and_says_so(here: Host) -> None:
    task, shim = new_task(), await here.shim()
    description = _replace_by_a_pipe(here)
    info = await shim.submit_task(task)
    killed = set()
    while info.status is not TaskStatus.TERMINATED:
        with suppress(FileNotFoundError):
            killed.add(here.runner_process(task.id).pid)
            here.kill_runner(task.id)
        await asyncio.sleep(0.02)
        info = await shim.task(task.id)
    description.rename(here.folder / "instance.json")
    assert info.termination_reason == "executor_error"
    assert "it was killed" in info.termination_message
    assert len(killed) == 5


async def test_a_runner_that_cannot_start_ends_the_task_with_the_last_words_of_its_log(here: Host) -> None:
    task, shim = new_task(), await here.shim()
    description = (here.folder / "instance.json").rename(here.folder / "instance.away")
    info = await shim.submit_task(task)
    while info.status is not TaskStatus.TERMINATED:
        info = await shim.task(task.id, seen=info.status, wait=10)
    description.rename(here.folder / "instance.json")
    assert info.termination_reason == "executor_error"
    assert "FileNotFoundError" in info.termination_message
    assert "instance.json" in info.termination_message
    assert "runner.log" not in info.termination_message


def _replace_by_a_pipe(here: Host) -> Path:
    """A runner that reads the instance's description waits for ever; where the description is now."""
    description = (here.folder / "instance.json").rename(here.folder / "instance.away")
    os.mkfifo(here.folder / "instance.json")
    return description
