"""What lives on of tasks whose folder somebody deleted: no file tells of it any more, but the process table does.

Runners are told by the log they write, keepers by their command line, jobs by descent and by their mark. Whatever
else names a task, such as an editor, is left alone.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from uuid import UUID

from perdure.agents.identity import Process
from perdure.agents.process import tree
from perdure.agents.process.descent import descendants

_RUNNER = b"perdure.agents.shim.zygote"
_RUNNER_LOG = re.compile(r"(.*)/tasks/([0-9a-f-]{36})/runner\.log( \(deleted\))?")
_KEEPER_SPEC = re.compile(r"(.*)/tasks/([0-9a-f-]{36})/keeper\.spec")
_SHIM = (b"-m", b"perdure.agents.shim", b"--folder")
_PATIENCE = 20.0


def shims(ours: Callable[[Path], bool]) -> list[Process]:
    """The living shims of folders that are ``ours``, there or deleted."""
    found: list[Process] = []
    for pid, words in _command_lines():
        if tuple(words[1:4]) == _SHIM and len(words) > 4 and ours(Path(os.fsdecode(words[4]))):
            found += filter(None, [Process.of(pid)])
    return found


def tasks(ours: Callable[[Path], bool]) -> set[UUID]:
    """The tasks of shims' folders that are ``ours``, there or deleted, that have a runner or a keeper."""
    return {task for _, folder, task in _agents() if ours(folder)}


def end_tasks(ended: Collection[UUID]) -> None:
    """SIGKILL every process of these tasks, until none is left.

    Raises:
        StillAlive
    """
    deadline = time.monotonic() + _PATIENCE
    while left := _processes_of(ended):
        if time.monotonic() > deadline:
            raise tree.StillAlive(f"Processes survived SIGKILL for {_PATIENCE:.0f} s.")
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)


def _processes_of(ended: Collection[UUID]) -> list[int]:
    agents = [pid for pid, _, task in _agents() if task in ended]
    below = [pid for agent in agents for pid in descendants(agent)]
    marked = [pid for task in ended for pid in tree.orphans(task)]
    return [pid for pid in dict.fromkeys([*agents, *below, *marked]) if not _is_zombie(pid)]


def _agents() -> Iterator[tuple[int, Path, UUID]]:
    """Runners and keepers: pid, the folder of their shim, their task."""
    for pid, words in _command_lines():
        named = None
        if _RUNNER in words:
            with contextlib.suppress(OSError):
                named = _RUNNER_LOG.fullmatch(str(Path(f"/proc/{pid}/fd/1").readlink()))
        elif any(word.endswith(b"/keeper.py") for word in words):
            named = next(filter(None, (_KEEPER_SPEC.fullmatch(os.fsdecode(word)) for word in words)), None)
        if named is not None:
            with contextlib.suppress(ValueError):
                yield pid, Path(named[1]), UUID(named[2])


def _command_lines() -> Iterator[tuple[int, list[bytes]]]:
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            yield int(path.name), (path / "cmdline").read_bytes().split(b"\0")[:-1]


def _is_zombie(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return True
    return stat[stat.rindex(b")") + 2 :][:1] in (b"Z", b"X")
