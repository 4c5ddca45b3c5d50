"""Processes that may outlive the one that started them."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import psutil
from pydantic import ValidationError

from perdure.agents.identity import Process


def written_in(path: Path) -> Process | None:
    """The process that wrote itself into ``path``, if it still lives."""
    try:
        process = Process.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
    return process if process.alive else None


def end(process: Process, gently: int = signal.SIGTERM, within: float = 10.0) -> None:
    """Ask it to stop; after ``within`` seconds, stop it for certain. Returns when it is gone."""
    for number, patience in ((gently, within), (signal.SIGKILL, 30.0)):
        process.kill(number)
        deadline = time.monotonic() + patience
        while process.alive and time.monotonic() < deadline:
            time.sleep(0.02)


def listens(pid: int, port: int) -> bool:
    """Whether it is that process, and no stranger, who answers on a TCP port of this machine."""
    try:
        connections = psutil.Process(pid).net_connections("tcp")
    except psutil.Error:
        return False
    return any(c.status == psutil.CONN_LISTEN and c.laddr.port == port for c in connections)
