"""An image task through a real shim and runner, as a worker drives them."""

from __future__ import annotations

from perdure.agents.protocol import RunnerState
from tests.agents.docker_tasks import IMAGE
from tests.agents.processes import host, new_task, start
from tests.support.engine import ContainerEngine


async def test_image_task_runs_from_submit_to_removal(engine: ContainerEngine) -> None:
    async with host(DOCKER_HOST=engine.address) as here:
        task = new_task(image_name=IMAGE)
        script = "echo from a container; head -1 /etc/passwd; exit 3"
        job = await start(here, ["/bin/sh", "-c", script], task)
        assert await job.log() == b"from a container\nroot:x:0:0:root:/root:/bin/sh\n"
        state = await job.ended()
        assert (state.state, state.exit_status) == (RunnerState.ENDED, 3)
        await job.runner.ack()
        await job.shim.terminate(job.id)
        await job.shim.remove(job.id)
        assert engine.containers() == []
