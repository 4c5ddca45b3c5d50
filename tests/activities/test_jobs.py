"""One job at its agents, from the shim's first word to nothing left."""

from __future__ import annotations

from perdure.model.statuses import JobReason, JobStatus
from tests.activities.bench import Bench


async def test_a_job_is_brought_up_watched_and_taken_down(bench: Bench) -> None:
    instance = await bench.instance()
    step = await bench.running(instance, "echo out; echo err >&2; exit 3")
    row = await bench.row(step)
    assert row.status is JobStatus.RUNNING
    outcome = await bench.watch(step)
    assert (outcome.reason, outcome.exit_status) == (JobReason.CONTAINER_EXITED_WITH_ERROR, 3)
    assert sorted((await bench.log(step)).split()) == [b"err", b"out"]
    assert (await bench.row(step)).log_complete
    assert not (await bench.remove(step)).unreachable
    assert await bench.tasks(instance) == []
