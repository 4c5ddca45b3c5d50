"""The worker dies around every step of a gang: each node still runs exactly as often as it should."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from perdure.model import activities as do
from perdure.model.activities import Activity
from tests.faults.conftest import Installation

pytestmark = pytest.mark.asyncio(loop_scope="module")

GANG = """
echo ran >> {folder}/ran-$PERDURE_NODE_RANK
if [ $PERDURE_NODE_RANK = 1 ] && ! [ -e {folder}/failed ]; then
  until [ -e {folder}/ran-0 ]; do sleep 0.01; done
  touch {folder}/failed; exit 3
fi
for i in $(seq 20); do echo "line $i of $PERDURE_NODE_RANK"; sleep 0.02; done
"""
"""Two nodes; node 1 fails once, when node 0 has begun, so that both run twice, and never more."""

ELSEWHERE = {do.WITHDRAW_CLAIM, do.CATCH_UP, do.INSTANCE_LOST, do.RECORD_FLEET, do.SWEEP}
"""Steps that a gang with one retry, whose instances then idle out, does not come by."""

STEPS = [step for step in do.ALL if step not in ELSEWHERE]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.name)
async def test_worker_killed_around_every_step_of_a_gang_with_a_retry(
    deadly: Installation, step: Activity, when: str
) -> None:
    await _gang_survives(deadly, f"{step.name}:{when}")


@pytest.mark.parametrize("step", ["claim", "start_job", "watch_job", "end_job"])
async def test_worker_told_to_end_in_the_middle_of_a_gang(deadly: Installation, step: str) -> None:
    await _gang_survives(deadly, f"{step}:before:TERM")


async def _gang_survives(stack: Installation, point: str) -> None:
    work = Path(tempfile.mkdtemp(prefix="pw-"))
    work.chmod(0o777)
    stack.die_at(point)
    try:
        run_id = await stack.submit("gang", GANG.format(folder=work), nodes=2, retry=True, idle_duration="1s")
        row = await stack.end(run_id)
        assert row.status == "done", row
        await stack.no_instances()
        assert stack.died(), "the worker never died there"
        for node in range(2):
            assert (work / f"ran-{node}").read_text() == "ran\n" * 2, "a node ran more or less often than twice"
            lines = "".join(f"line {i} of {node}\n" for i in range(1, 21))
            assert (await stack.log(row, node, attempt=1)).decode() == lines
        await stack.at_rest()
    finally:
        shutil.rmtree(work)
