"""The end of a local instance: its tasks, its shim, its folders, in this order, each safe to repeat."""

from __future__ import annotations

import asyncio
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from uuid import UUID

from perdure.agents import remains
from perdure.agents.client import Agents, ShimClient
from perdure.agents.protocol import Terminate
from perdure.backends import Endpoint
from perdure.backends.local_shims import Folder
from perdure.model.errors import AgentError, AgentUnreachable, ProviderError
from perdure.model.messages import Termination
from perdure.model.statuses import JobReason

ANSWER_WITHIN = 15.0
"""Seconds for a shim that was just started to answer."""

LEAVES_WITHIN = 15.0
"""Seconds for a shim whose folder was deleted to have ended its tasks and itself."""

_TASK = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

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
        else:
            here = {folder.path, folder.path.resolve()}
            await asyncio.to_thread(end_remains, here.__contains__, [work_dir])
        await asyncio.to_thread(_remove, folder, work_dir, described)
    except (AgentError, ProviderError) as error:
        return Termination(gone=False, message=error.message)
    except OSError as error:
        return Termination(gone=False, message=f"{error.filename or folder.path}: {error.strerror}")
    return Termination(gone=True)


def end_remains(ours: Callable[[Path], bool], work_dirs: Iterable[Path]) -> None:
    """End what lives of instances whose folders (``ours``) were deleted. A shim sees it itself, and ends its tasks;
    only of a dead one, or one that does not, they are ended here.

    Raises:
        OSError: something survives.
    """
    deadline = time.monotonic() + LEAVES_WITHIN
    while (shims := remains.shims(ours)) and time.monotonic() < deadline:
        time.sleep(0.1)
    for shim in shims:
        shim.kill()
    kept = [path for work_dir in work_dirs if work_dir.exists() for path in work_dir.iterdir()]
    remains.end_tasks(remains.tasks(ours) | {UUID(path.name) for path in kept if _TASK.fullmatch(path.name)})


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
