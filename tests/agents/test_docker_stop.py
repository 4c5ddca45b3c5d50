"""Ending a container: a signal reaches everyone in it, a kill leaves nobody, removal touches only the task's."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from perdure.agents import docker_signals
from perdure.agents.execution import ExecutionError, Exit
from tests.agents.docker_tasks import Task, Tasks
from tests.agents.processes import eventually

FAMILY = """
sh -c 'trap "echo child; exit" TERM; while :; do usleep 20000; done' &
setsid sh -c 'trap "echo session; exit" TERM; while :; do usleep 20000; done' &
trap '' TERM; usleep 300000; echo ready; wait; wait; echo over
"""
STUBBORN = "trap '' TERM INT HUP; (setsid sh -c 'while :; do usleep 20000; done' &); sleep 0.2; echo up; sleep 60"


async def watched(task: Task, until: bytes) -> asyncio.Task[Exit]:
    """The task's end, once its log has a word."""
    await task.start()
    watching = asyncio.create_task(task.execution.wait())
    await eventually(lambda: until in task.log)
    return watching


def inside(task: Task) -> list[int]:
    """The host's ids of the processes in a task's container."""
    container = task.container["Id"]
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                if container in (path / "cgroup").read_text():
                    found.append(int(path.name))
            except OSError:
                continue
    return found


async def test_signal_reaches_children_that_a_deaf_main_process_started(tasks: Tasks) -> None:
    task = tasks.shell(FAMILY)
    watching = await watched(task, b"ready")
    await task.execution.signal("SIGTERM")
    assert await asyncio.wait_for(watching, 60) == Exit(0)
    assert {b"child", b"over", b"ready", b"session"} <= set(task.log.splitlines())


async def test_signal_reaches_children_also_where_we_may_not_signal_ourselves(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = tasks.shell(FAMILY)
    watching = await watched(task, b"ready")

    def forbidden(pid: int, number: int) -> None:
        raise PermissionError(pid, number)

    monkeypatch.setattr(docker_signals.os, "kill", forbidden)
    await task.execution.signal("SIGTERM")
    assert await asyncio.wait_for(watching, 60) == Exit(0)
    assert {b"child", b"over", b"ready", b"session"} <= set(task.log.splitlines())


async def test_one_signal_is_delivered_once(tasks: Tasks) -> None:
    task = tasks.shell("trap 'echo caught' TERM; echo ready; while :; do usleep 20000; done")
    watching = await watched(task, b"ready")
    await task.execution.signal("SIGTERM")
    await eventually(lambda: b"caught" in task.log)
    await asyncio.sleep(0.3)
    assert task.log.count(b"caught") == 1
    await task.execution.kill()
    assert await watching == Exit(137)


@pytest.mark.parametrize(("name", "status"), [("SIGTERM", 143), ("SIGINT", 130), ("SIGUSR1", 138)])
async def test_main_process_ends_by_the_signal(tasks: Tasks, name: str, status: int) -> None:
    task = tasks.shell("echo ready; exec sleep 60")
    watching = await watched(task, b"ready")
    await task.execution.signal(name)
    assert await asyncio.wait_for(watching, 60) == Exit(status)


async def test_kill_ends_double_forks_that_ignore_sigterm(tasks: Tasks) -> None:
    task = tasks.shell(STUBBORN)
    watching = await watched(task, b"up")
    await task.execution.signal("SIGTERM")
    assert len(inside(task)) >= 2
    await task.execution.kill()
    assert inside(task) == []
    await watching


async def test_ended_and_unstarted_jobs_can_be_signalled_and_killed(tasks: Tasks) -> None:
    task = tasks.make("true")
    await task.execution.kill()
    with pytest.raises(ExecutionError, match="has not been started"):
        await task.execution.wait()
    await task.run()
    await task.execution.signal("SIGTERM")
    await task.execution.kill()
    await task.preparation.remove(task.config, task.folder)
    await task.execution.signal("SIGTERM")
    await task.execution.kill()


async def test_removal_ends_a_running_job_and_may_be_asked_for_by_many_at_once(tasks: Tasks) -> None:
    task = tasks.shell(STUBBORN)
    watching = await watched(task, b"up")
    pids = inside(task)
    await asyncio.gather(*(task.preparation.remove(task.config, task.folder) for _ in range(8)))
    assert tasks.engine.containers() == []
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    with pytest.raises(ExecutionError):
        await watching
    await task.preparation.remove(task.config, task.folder)


async def test_other_tasks_are_left_alone(tasks: Tasks) -> None:
    first, second = tasks.make("sleep", "60"), tasks.make("sleep", "60", name="train-0-0")
    await first.start()
    await second.start()
    await first.preparation.remove(first.config, first.folder)
    assert second.container["State"]["Running"]
    await second.execution.kill()
