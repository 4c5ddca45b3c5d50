"""A command from submit to its last byte and its clean-up."""

from __future__ import annotations

from perdure.agents.protocol import RunnerState, TaskStatus
from tests.agents.processes import Host, start


async def test_a_command_runs_and_its_output_and_exit_status_are_delivered(here: Host) -> None:
    job = await start(here, "echo hello; echo trouble >&2; exit 3")
    assert await job.log() == b"hello\ntrouble\n"
    state = await job.ended()
    assert (state.state, state.exit_status) == (RunnerState.ENDED, 3)
    assert state.reason == "container_exited_with_error"
    assert state.log_complete
    await job.runner.ack()
    assert (await job.shim.terminate(job.id)).status is TaskStatus.TERMINATED
    await job.shim.remove(job.id)
    assert (await job.shim.tasks()).tasks == []
