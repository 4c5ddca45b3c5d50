"""Ends every process of a job, and makes sure.

While the keeper lives, everything of the job is below it. If it was killed, its orphans are told by a variable of
their environment that is ours: no user's env can set it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path
from uuid import UUID

from perdure.agents import disk
from perdure.agents.process.descent import descendants
from perdure.agents.process.files import ProcessFiles

MARK = "_PERDURE_TASK"
"""The variable with the task's id, set after the user's own."""

_PATIENCE = 20.0
"""Seconds to end a tree. A process in an uninterruptible call of the kernel can take this long."""


class StillAlive(OSError):
    """Processes that survived SIGKILL."""


def send(files: ProcessFiles, signum: int) -> None:
    """A signal to every process of the job, but not to the sandbox around it."""
    keeper = files.keeper()
    if keeper is None or not keeper.alive:
        return
    below = descendants(keeper.pid)
    sandbox = {pid for pid in below if _is_sandbox(pid)}
    for pid in below:
        if pid not in sandbox:
            _kill(pid, signum)


async def kill(files: ProcessFiles, task_id: UUID) -> None:
    """SIGKILL everything of the job until nothing is left and the keeper has written the end down.

    Raises:
        StillAlive
    """
    deadline = time.monotonic() + _PATIENCE
    pause = 0.002
    while time.monotonic() < deadline:
        keeper = files.keeper()
        if keeper is not None and keeper.alive:
            left = descendants(keeper.pid)
            if not left and not disk.held(files.lock):
                return
        else:
            left = await asyncio.to_thread(orphans, task_id)
            if not left and not disk.held(files.lock):
                return
        for pid in left:
            _kill(pid, signal.SIGKILL)
        await asyncio.sleep(pause)
        pause = min(pause * 2, 0.1)
    raise StillAlive(f"Processes of the job survived SIGKILL for {_PATIENCE:.0f} s.")


def _is_sandbox(pid: int) -> bool:
    """Bubblewrap's two processes: the one outside, and the first one inside."""
    try:
        return Path(f"/proc/{pid}/comm").read_bytes() == b"bwrap\n"
    except OSError:
        return False


def orphans(task_id: UUID) -> list[int]:
    """Every process that carries the task's mark."""
    marker = f"{MARK}={task_id}".encode()
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            with contextlib.suppress(OSError):
                if marker in (path / "environ").read_bytes().split(b"\0") and int(path.name) != os.getpid():
                    found.append(int(path.name))
    return found


def _kill(pid: int, signum: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signum)
