"""A fresh embedded stack for one benchmark, and what its processes cost."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

PERDURE = str(Path(sys.executable).parent / "perdure")
TIMING = {"retry_backoff": [1.0]}
"""The only number that differs from a user's stack: nobody wants to wait for a 15 s backoff that is subtracted."""


@dataclass(frozen=True)
class Stack:
    home: Path
    ready_seconds: float
    environment: dict[str, str]
    strangers: frozenset[int]
    """Agents of other installations, that ran before."""

    def perdure(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PERDURE, *words], env=self.environment, check=True, capture_output=True, text=True, timeout=120
        )

    def processes(self) -> dict[str, list[psutil.Process]]:
        """The stack's own processes by part, and all agents of its instances together."""
        pids = json.loads((self.home / "stack.json").read_text())["pids"]
        supervisor = psutil.Process(pids.pop("supervisor"))
        parts = {"supervisor": [supervisor], **{name: _family(pid) for name, pid in pids.items()}}
        known = {process.pid for processes in parts.values() for process in processes}
        agents = [process for process in _agents() if process.pid not in known | self.strangers]
        return {**parts, "agents": agents}


def _agents() -> list[psutil.Process]:
    """Shims, zygotes and runners of any installation."""
    every = psutil.process_iter(["cmdline"])
    return [process for process in every if "perdure.agents" in " ".join(process.info["cmdline"] or ())]


def _family(pid: int) -> list[psutil.Process]:
    parent = psutil.Process(pid)
    return [parent, *parent.children(recursive=True)]


@contextlib.contextmanager
def fresh() -> Iterator[Stack]:
    """``perdure up`` on a new folder, timed until it says that it is ready; everything is deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
        home = Path(folder) / "home"
        environment = {**os.environ, "PERDURE_HOME": str(home), "PERDURE_TIMING": json.dumps(TIMING)}
        strangers = frozenset(process.pid for process in _agents())
        began = time.perf_counter()
        subprocess.run([PERDURE, "up", "--detach"], env=environment, check=True, capture_output=True, timeout=120)
        stack = Stack(home, time.perf_counter() - began, environment, strangers)
        try:
            yield stack
        finally:
            stack.perdure("down", "--all", "--delete-state")


def usage(stack: Stack, seconds: float) -> dict[str, tuple[float, float]]:
    """Per part: percent of one core over that time, and memory in MiB (shared pages by their share: PSS)."""
    processes = stack.processes()
    before = {part: _cpu(members) for part, members in processes.items()}
    time.sleep(seconds)
    return {
        part: (100 * (_cpu(members) - before[part]) / seconds, _memory(members))
        for part, members in processes.items()
    }


def _cpu(members: list[psutil.Process]) -> float:
    total = 0.0
    for process in members:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
    return total


def _memory(members: list[psutil.Process]) -> float:
    total = 0
    for process in members:
        with contextlib.suppress(psutil.NoSuchProcess):
            total += process.memory_full_info().pss
    return total / 1024**2
