"""Anything may be killed at any moment: nothing is lost, leaked or done twice."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time

import pytest

from tests.faults.conftest import Installation

COUNT = 'for i in $(seq 60); do echo "line $i"; sleep 0.05; done'
COUNTED = "".join(f"line {i}\n" for i in range(1, 61)).encode()


@pytest.mark.parametrize("part", ["worker", "temporal", "postgres"])
async def test_part_killed_while_a_job_runs_changes_nothing(installation: Installation, part: str) -> None:
    run_id = await installation.submit("counts", COUNT)
    await installation.until(run_id, "running")
    installation.kill(part)
    row = await installation.end(run_id)
    assert (row.status, len(row.jobs)) == ("done", 1)
    assert await installation.log(row) == COUNTED
    await installation.at_rest()


async def test_everything_killed_then_up_continues_every_run(installation: Installation) -> None:
    run_id = await installation.submit("counts", COUNT, nodes=2)
    await installation.until(run_id, "running")
    pids = installation.pids()
    for pid in pids.values():
        os.kill(pid, signal.SIGKILL)
    for shim in installation.agents("perdure.agents.shim"):
        shim.kill()
    installation.client = None
    await asyncio.sleep(0.5)
    installation.perdure("up", "--detach")
    row = await installation.end(run_id)
    assert (row.status, len(row.jobs)) == ("done", 2)
    for node in range(2):
        assert await installation.log(row, node) == COUNTED
    await installation.at_rest()


@pytest.mark.parametrize("agent", ["shim", "runner"])
@pytest.mark.parametrize("delay", [0.0, 0.6, 2.9])
async def test_agent_killed_at_any_time_delivers_log_and_exit_status(
    installation: Installation, agent: str, delay: float
) -> None:
    await installation.end(await installation.submit("warm", "true"))
    run_id = await installation.submit("counts", COUNT)
    await installation.until(run_id, "running")
    await asyncio.sleep(delay)
    for process in installation.agents(f"perdure.agents.{agent}"):
        process.kill()
    row = await installation.end(run_id)
    assert (row.status, row.jobs[0].exit_status) == ("done", 0)
    assert await installation.log(row) == COUNTED
    await installation.at_rest()


async def test_job_that_double_forks_and_ignores_term_is_ended_wholly(installation: Installation) -> None:
    stubborn = (
        "trap '' TERM; (setsid sh -c \"trap '' TERM; while :; do sleep 1; done\" &) ; while :; do sleep 1; done"
    )
    run_id = await installation.submit("stubborn", stubborn)
    await installation.until(run_id, "running")
    client = await installation.connected()
    began = time.monotonic()
    await client.stop("main", "stubborn")
    row = await installation.end(run_id)
    assert row.status == "terminated"
    assert time.monotonic() - began < 15
    await installation.at_rest()


async def test_stop_at_twenty_random_moments_always_ends_the_run(installation: Installation) -> None:
    rng = random.Random(20)
    client = await installation.connected()

    async def one(number: int) -> None:
        name = f"moment-{number}"
        run_id = await installation.submit(name, "for i in 1 2 3; do echo $i; sleep 0.2; done", retry=True)
        await asyncio.sleep(rng.uniform(0, 3))
        await client.stop("main", name, abort=rng.random() < 0.3)
        row = await installation.end(run_id)
        assert row.status in ("terminated", "done"), row

    await asyncio.gather(*(one(number) for number in range(20)))
    await installation.at_rest()


async def test_temporals_terminate_then_the_sweep_leaves_nothing(installation: Installation) -> None:
    client = await installation.connected()
    run_id = await installation.submit("cut", "sleep 600", nodes=2)
    await installation.until(run_id, "running")
    await client.temporal.get_workflow_handle("run/main/cut").terminate("test")
    schedule = client.temporal.get_schedule_handle("perdure-sweep")
    deadline = time.monotonic() + 60
    while installation.agents("keeper") or (await installation.run(run_id)).status != "terminated":  # type: ignore[union-attr]
        assert time.monotonic() < deadline, await installation.run(run_id)
        await schedule.trigger()
        await asyncio.sleep(2)
    await installation.at_rest()


async def test_name_used_again_while_the_old_jobs_still_clean_up(installation: Installation) -> None:
    client = await installation.connected()
    ids = []
    for _ in range(3):
        run_id = await installation.submit("again", "trap 'sleep 1; exit 0' TERM; sleep 600 & wait")
        await installation.until(run_id, "running")
        await client.stop("main", "again")
        await client.closed("main", "again", run_id)
        ids.append(run_id)
    rows = [await installation.end(run_id) for run_id in ids]
    assert [row.status for row in rows] == ["terminated"] * 3
    await installation.at_rest()
