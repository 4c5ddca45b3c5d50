"""The worker dies around every step of a gang: each node still runs exactly as often as it should."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perdure.model import activities as do
from perdure.model.activities import Activity
from tests.support.deaths import Deaths
from tests.support.runs import Runs

pytestmark = pytest.mark.asyncio(loop_scope="module")

GANG = """
echo ran >> {folder}/ran-$PERDURE_NODE_RANK
if ! [ -e {folder}/failed ]; then
  if [ $PERDURE_NODE_RANK = 0 ]; then sleep 1000; fi
  until [ -e {folder}/ran-0 ]; do sleep 0.01; done
  touch {folder}/failed; exit 3
fi
for i in $(seq 20); do echo "line $i of $PERDURE_NODE_RANK"; sleep 0.02; done
"""
"""Two nodes. The first time node 1 fails when node 0 has begun, and node 0 runs until it is stopped, so that both
run twice, and never more."""

STEPS = {
    "placing": [do.RESOLVE_RUN, do.CLAIM, do.RECORD_RUN],
    "making": [do.VIEW_INSTANCE, do.CREATE_INSTANCE, do.REACH_INSTANCE, do.INSTANCE_READY],
    "running": [do.SUBMIT_TASK, do.START_JOB, do.RECORD_JOB, do.WATCH_JOB],
    "ending": [do.STOP_JOB, do.REMOVE_TASK, do.END_JOB],
    "leaving": [do.RETIRE_INSTANCE, do.TERMINATE_INSTANCE, do.INSTANCE_GONE],
}
"""Every step that such a gang comes by, when its instances idle out behind it."""

ELSEWHERE = [do.WITHDRAW_CLAIM, do.CATCH_UP, do.INSTANCE_LOST, do.RECORD_FLEET, do.READ_CALENDAR, do.SWEEP]


async def test_every_step_is_thought_of() -> None:
    """Here, or elsewhere."""
    here = [step.name for steps in STEPS.values() for step in steps]
    assert sorted([*here, *(step.name for step in ELSEWHERE)]) == sorted(step.name for step in do.ALL)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
async def test_worker_killed_around_every_step_of_a_gang_with_a_retry(
    deadly: tuple[Runs, Deaths], work: Path, steps: list[Activity[Any, Any]], when: str
) -> None:
    await _gang_survives(*deadly, work, [f"{step.name}:{when}" for step in steps])


async def test_worker_told_to_end_in_the_middle_of_a_gang(deadly: tuple[Runs, Deaths], work: Path) -> None:
    steps = (do.CLAIM, do.START_JOB, do.WATCH_JOB, do.END_JOB)
    await _gang_survives(*deadly, work, [f"{step.name}:before:TERM" for step in steps])


async def _gang_survives(runs: Runs, deaths: Deaths, work: Path, points: list[str]) -> None:
    deaths.at(points)
    run_id = await runs.submit("gang", GANG.format(folder=work), nodes=2, retry=True, idle_duration="1s")
    row = await runs.end(run_id)
    assert row.status == "done", row
    await runs.no_instances()
    assert deaths.left == [], "the worker never came by there"
    for node in range(2):
        assert (work / f"ran-{node}").read_text() == "ran\n" * 2, "a node ran more or less often than twice"
        lines = "".join(f"line {i} of {node}\n" for i in range(1, 21))
        assert (await runs.log(row, node, attempt=1)).decode() == lines
    await runs.at_rest()
