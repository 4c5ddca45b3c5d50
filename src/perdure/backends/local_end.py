"""The end of a local instance: its tasks, its shim, its folders, in this order, each safe to repeat."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from uuid import UUID

from perdure.agents.client import Agents, ShimClient
from perdure.agents.protocol import Terminate
from perdure.backends import Endpoint
from perdure.backends.local_shims import Folder
from perdure.model.errors import AgentError, AgentUnreachable, ProviderError
from perdure.model.messages import Termination
from perdure.model.statuses import JobReason

ANSWER_WITHIN = 15.0
"""Seconds for a shim that was just started to answer."""

GENTLY = Terminate(termination_reason=JobReason.TERMINATED_BY_SERVER, timeout=2.0)


async def terminate(folder: Folder, work_dir: Path, agents: Agents) -> Termination:
    """End everything of the instance. ``gone`` only when nothing is left: no task, no shim, no folder.

    A dead shim is started for it: only a shim knows what runs in its tasks, and where.
    """
    try:
        described = folder.read()
        if described is not None:
            folder.leaving.touch()
            endpoint = Endpoint(UUID(described["instance_id"]), str(folder.path / "shim.sock"), described["token"])
            await _end_tasks(folder, await agents.shim(endpoint))
            await asyncio.to_thread(folder.stop)
            await agents.forget(endpoint, endpoint.socket)
        await asyncio.to_thread(_remove, folder, work_dir, described)
    except (AgentError, ProviderError) as error:
        return Termination(gone=False, message=error.message)
    except OSError as error:
        return Termination(gone=False, message=f"{error.filename or folder.path}: {error.strerror}")
    return Termination(gone=True)


async def _end_tasks(folder: Folder, shim: ShimClient) -> None:
    deadline = time.monotonic() + ANSWER_WITHIN
    while True:
        try:
            await asyncio.to_thread(folder.start, leaving=True)
            listed = await shim.tasks()
            break
        except AgentUnreachable:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(0.05)

    async def end(task_id: UUID) -> None:
        await shim.terminate(task_id, GENTLY)
        await shim.remove(task_id)

    await asyncio.gather(*(end(task.id) for task in listed.tasks))


def _remove(folder: Folder, work_dir: Path, described: Mapping[str, str] | None) -> None:
    for path in {work_dir, Path(described["work_dir"]) if described else work_dir}:
        if path.exists():
            shutil.rmtree(path)
    # With its description the instance is gone for everybody else; what is left is of no meaning.
    folder.description.unlink(missing_ok=True)
    if folder.path.exists():
        shutil.rmtree(folder.path)
