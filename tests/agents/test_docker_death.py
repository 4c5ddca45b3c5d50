"""Killing whoever watches a container, or the engine, at any moment: nothing is lost, repeated or run twice."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from perdure.agents import identity
from perdure.agents.execution import Exit
from perdure.agents.protocol import Mount
from tests.agents.docker_tasks import Task, Tasks
from tests.agents.processes import eventually

TICKS = "i=0; while [ $i -lt {n} ]; do i=$((i+1)); echo line $i; {pause}; done; exit 3"


def lines(number: int) -> bytes:
    return b"".join(b"line %d\n" % i for i in range(1, number + 1))


async def finished(task: Task) -> Exit:
    return await eventually(lambda: task.result)


async def test_watcher_killed_while_the_job_prints(tasks: Tasks) -> None:
    task = tasks.shell(TICKS.format(n=300, pause="usleep 10000"))
    await task.prepare()
    for number in (20, 80, 150):
        task.watch()
        await eventually(lambda number=number: task.log.count(b"\n") > number)
        task.kill_watcher()
        await asyncio.sleep(0.3)
    task.watch()
    assert await finished(task) == Exit(3)
    assert task.log == lines(300)


async def test_job_that_ended_while_nobody_watched(tasks: Tasks) -> None:
    task = tasks.shell(TICKS.format(n=5000, pause=":"))
    await task.start()
    await eventually(lambda: not task.container["State"]["Running"])
    assert task.log == b""
    task.watch()
    assert await finished(task) == Exit(3)
    assert task.log == lines(5000)


async def test_watcher_killed_while_the_job_ends(tasks: Tasks) -> None:
    task = tasks.shell(TICKS.format(n=20000, pause=":"))
    await task.prepare()
    task.watch()
    await eventually(lambda: task.log)
    await eventually(lambda: not task.container["State"]["Running"])
    task.kill_watcher()
    task.watch()
    assert await finished(task) == Exit(3)
    assert task.log == lines(20000)


async def test_watcher_killed_in_the_middle_of_a_line(tasks: Tasks) -> None:
    task = tasks.shell(TICKS.format(n=100, pause=":"))
    await task.start()
    await eventually(lambda: not task.container["State"]["Running"])
    (task.folder / "log").write_bytes(lines(100)[:333])
    assert await task.execution.wait() == Exit(3)
    assert task.log == lines(100)


@pytest.mark.parametrize("seed", range(6))
async def test_watcher_killed_while_it_starts_the_job_runs_it_once(tasks: Tasks, tmp_path: Path, seed: int) -> None:
    task = tasks.shell(
        "echo once >> /out/count; echo ran", instance_mounts=[Mount(instance_path=str(tmp_path), path="/out")]
    )
    await task.prepare()
    chance = random.Random(seed)
    for _ in range(3):
        task.watch()
        await eventually(lambda: (task.folder / "hostfile").exists())
        await asyncio.sleep(chance.uniform(0, 0.3))
        task.kill_watcher()
    task.watch()
    assert await finished(task) == Exit(0)
    assert (tmp_path / "count").read_text() == "once\n"
    assert task.log == b"ran\n"
    assert len(tasks.engine.containers()) == 1


async def test_watcher_killed_while_it_starts_leaves_nothing_after_removal(tasks: Tasks) -> None:
    task = tasks.make("sleep", "60")
    await task.prepare()
    task.watch()
    await eventually(lambda: (task.folder / "asked.json").exists())
    task.kill_watcher()
    await task.preparation.remove(task.config, task.folder)
    assert tasks.engine.containers() == []


async def test_container_that_ended_before_a_reboot_has_a_result(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = tasks.shell("echo over; exit 3")
    assert not await task.preparation.has_result(task.config, task.folder)
    await task.start()
    await eventually(lambda: not task.container["State"]["Running"])
    assert not await task.preparation.has_result(task.config, task.folder), "it ended in this boot"
    monkeypatch.setattr(identity, "uptime", lambda: 0.0)
    assert await task.preparation.has_result(task.config, task.folder)
    assert await task.execution.wait() == Exit(3)


async def test_engine_killed_while_the_job_runs(tasks: Tasks) -> None:
    task = tasks.shell("trap '' TERM; " + TICKS.format(n=100_000, pause="usleep 10000"))
    await task.start()
    watching = asyncio.create_task(task.execution.wait())
    await eventually(lambda: task.log.count(b"\n") > 20)
    await asyncio.to_thread(tasks.engine.kill)
    signalling = asyncio.create_task(task.execution.signal("SIGTERM"))
    await asyncio.sleep(0.5)
    assert not watching.done()
    await asyncio.to_thread(tasks.engine.start)
    assert (await asyncio.wait_for(watching, 60)).exit_status != 0
    await asyncio.wait_for(signalling, 60)
    printed = task.log.count(b"\n")
    assert printed > 20
    assert task.log == lines(printed)
