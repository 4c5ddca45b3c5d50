"""Anything may be killed at any moment: nothing is lost, leaked or done twice."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from tests.support.runs import Runs
from tests.support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")

COUNT = 'for i in $(seq 60); do echo "line $i"; sleep 0.05; done'
COUNTED = "".join(f"line {i}\n" for i in range(1, 61)).encode()


@pytest.mark.parametrize("agent", ["shim", "runner"])
@pytest.mark.parametrize("delay", [0.0, 0.6, 2.9])
async def test_agent_killed_at_any_time_delivers_log_and_exit_status(runs: Runs, agent: str, delay: float) -> None:
    await runs.end(await runs.submit("warm", "true"))
    run_id = await runs.submit("counts", COUNT)
    await runs.until(run_id, "running")
    await asyncio.sleep(delay)
    runs.stack.kill_agents(f"perdure.agents.{agent}")
    row = await runs.end(run_id)
    assert (row.status, row.jobs[0].exit_status) == ("done", 0)
    assert await runs.log(row) == COUNTED
    await runs.at_rest()


async def test_job_that_double_forks_and_ignores_term_is_ended_wholly(runs: Runs, work: Path) -> None:
    deaf = f"trap '' TERM; touch {work}/"
    for_ever = "while :; do sleep 1; done"
    run_id = await runs.submit("stubborn", f'{deaf}main; (setsid sh -c "{deaf}child; {for_ever}" &) ; {for_ever}')
    await eventually(lambda: exists(work / "child", work / "main"), "both to be deaf")
    client = await runs.client()
    await client.stop("main", "stubborn")
    assert (await runs.end(run_id)).status == "terminated"
    await runs.at_rest()


async def test_stop_at_twenty_random_moments_always_ends_the_run(runs: Runs) -> None:
    rng = random.Random(20)
    client = await runs.client()

    async def one(number: int) -> None:
        name = f"moment-{number}"
        run_id = await runs.submit(name, "for i in 1 2 3; do echo $i; sleep 0.2; done", retry=True)
        await asyncio.sleep(rng.uniform(0, 3))
        await client.stop("main", name, abort=rng.random() < 0.3)
        row = await runs.end(run_id)
        assert row.status in ("terminated", "done"), row

    await asyncio.gather(*(one(number) for number in range(20)))
    await runs.at_rest()


async def test_temporals_terminate_then_the_sweep_leaves_nothing(runs: Runs) -> None:
    client = await runs.client()
    run_id = await runs.submit("cut", "sleep 600", nodes=2)
    await runs.until(run_id, "running")
    await client.temporal.get_workflow_handle("run/main/cut").terminate("test")
    schedule = client.temporal.get_schedule_handle("perdure-sweep")

    async def swept() -> bool:
        await schedule.trigger()
        row = await runs.row(run_id)
        return row is not None and row.status == "terminated" and not runs.stack.agents("keeper")

    await eventually(swept, "the sweep")
    await runs.at_rest()


async def test_name_used_again_while_the_old_jobs_still_clean_up(runs: Runs) -> None:
    client = await runs.client()
    ids = []
    for _ in range(3):
        run_id = await runs.submit("again", "trap 'sleep 1; exit 0' TERM; sleep 600 & wait")
        await runs.until(run_id, "running")
        await client.stop("main", "again")
        await client.closed("main", "again", run_id)
        ids.append(run_id)
    rows = [await runs.end(run_id) for run_id in ids]
    assert [row.status for row in rows] == ["terminated"] * 3
    await runs.at_rest()


async def exists(*paths: Path) -> bool:
    return all(path.exists() for path in paths)
