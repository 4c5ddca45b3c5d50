"""An image task through a real shim and runner, as a worker drives them."""

from __future__ import annotations

import asyncio

import pytest

from perdure.agents.protocol import RunnerState, TaskStatus, Terminate
from perdure.model.errors import AgentUnreachable
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
        info = await job.shim.task(job.id)
        (container,) = engine.containers()
        assert (info.container_id, [f"/{info.container_name}"]) == (container["Id"], container["Names"])
        assert (state.state, state.exit_status) == (RunnerState.ENDED, 3)
        await job.runner.ack()
        await job.shim.terminate(job.id)
        await job.shim.remove(job.id)
        assert engine.containers() == []


async def test_image_task_that_never_had_a_container_is_removed_without_its_engine() -> None:
    async with host(DOCKER_HOST="unix:///nowhere/docker.sock") as here:
        shim = await here.shim()
        task = new_task(image_name=IMAGE)
        info = await shim.submit_task(task)
        while info.status is not TaskStatus.TERMINATED:
            info = await shim.task(task.id, seen=info.status, wait=10)
        assert info.termination_reason == "creating_container_error"
        assert info.termination_message.startswith("the container engine at unix:///nowhere/docker.sock does not")
        await shim.remove(task.id)
        assert (await shim.tasks()).tasks == []


async def test_container_whose_engine_is_away_is_removed_once_it_is_back(engine: ContainerEngine) -> None:
    async with host(DOCKER_HOST=engine.address) as here:
        job = await start(here, ["/bin/sh", "-c", "echo up; sleep 600"], new_task(image_name=IMAGE))
        await job.printed(b"up")
        await asyncio.to_thread(engine.kill)
        here.kill_runner(job.id)
        assert (await job.shim.terminate(job.id, Terminate(timeout=0))).status is TaskStatus.TERMINATED
        with pytest.raises(AgentUnreachable, match="job-0-0 could not be removed: the container engine at"):
            await job.shim.remove(job.id)
        await asyncio.to_thread(engine.start)
        await job.shim.remove(job.id)
        assert engine.containers() == []
