"""A task that is still pulling its image can be ended at once. The engine here is one whose pulls never end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from perdure.agents.protocol import TaskStatus, Terminate
from tests.agents.processes import Host, new_task


@asynccontextmanager
async def endless_engine(path: Path) -> AsyncIterator[asyncio.Event]:
    """Has no image and no container, and pulls for ever; the event says that it was asked to."""
    pulling = asyncio.Event()
    gone = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                while (await reader.readline()).strip():
                    pass
                if b"/images/create" in line:
                    pulling.set()
                    await gone.wait()
                status, body = (b"200 OK", b"[]") if b"/containers/json" in line else (b"404 Not Found", b"{}")
                writer.write(b"HTTP/1.1 %s\r\nContent-Type: application/json\r\n" % status)
                writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        finally:
            writer.close()

    server = await asyncio.start_unix_server(answer, str(path))
    try:
        yield pulling
    finally:
        gone.set()
        server.close()


async def test_a_terminate_cancels_the_pull(here: Host) -> None:
    async with endless_engine(here.base / "engine.sock") as pulling:
        here.kill_shim()
        here.environment = {"DOCKER_HOST": f"unix://{here.base}/engine.sock"}
        here.start_shim()
        shim = await here.shim()
        task = new_task(image_name="registry.invalid/image:1")
        await shim.submit_task(task)
        await asyncio.wait_for(pulling.wait(), 60)
        info = await shim.task(task.id)
        assert (info.status, info.executor, info.runner_socket) == (TaskStatus.PULLING, "docker", "")
        wish = Terminate(termination_reason="terminated_by_user")
        info = await asyncio.wait_for(shim.terminate(task.id, wish), 60)
        assert (info.status, info.termination_reason) == (TaskStatus.TERMINATED, "terminated_by_user")
        assert info.runner_socket == "", "there never was a job"
        await shim.remove(task.id)


async def test_a_pull_goes_on_with_the_next_shim(here: Host) -> None:
    async with endless_engine(here.base / "engine.sock") as pulling:
        here.kill_shim()
        here.environment = {"DOCKER_HOST": f"unix://{here.base}/engine.sock"}
        here.start_shim()
        shim = await here.shim()
        task = new_task(image_name="registry.invalid/image:1")
        await shim.submit_task(task)
        await asyncio.wait_for(pulling.wait(), 60)
        here.kill_shim()
        pulling.clear()
        here.start_shim()
        shim = await here.shim()
        await asyncio.wait_for(pulling.wait(), 60)
        assert (await shim.task(task.id)).status is TaskStatus.PULLING
        await shim.terminate(task.id)
        await shim.remove(task.id)
