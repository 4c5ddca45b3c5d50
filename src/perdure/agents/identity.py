"""Which process is meant: ids are used again, so each goes with its start and the boot it belongs to."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path

from pydantic import BaseModel


class Process(BaseModel):
    """One process of one boot. ``started`` is its start time as the system counts it (ticks, or seconds)."""

    pid: int
    started: float
    boot: str

    @classmethod
    def of(cls, pid: int) -> Process | None:
        """The living process ``pid``, or None."""
        started = _started(pid)
        return None if started is None else cls(pid=pid, started=started, boot=boot_id())

    @property
    def alive(self) -> bool:
        """Whether this very process runs; one that has ended and waits to be reaped does not."""
        return self.boot == boot_id() and _started(self.pid) == self.started

    def kill(self, signum: int = signal.SIGKILL) -> None:
        """Send a signal, if it is alive."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signum)

    async def gone(self) -> None:
        """Until it has ended."""
        try:
            fd = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            while self.alive:  # noqa: ASYNC110  nothing tells us of it here
                await asyncio.sleep(0.05)
            return
        try:
            if not self.alive:
                return
            loop = asyncio.get_running_loop()
            ended = loop.create_future()
            loop.add_reader(fd, lambda: ended.done() or ended.set_result(None))
            try:
                await ended
            finally:
                loop.remove_reader(fd)
        finally:
            os.close(fd)


def boot_id() -> str:
    """What tells this boot of the host from every other."""
    path = Path("/proc/sys/kernel/random/boot_id")
    if path.exists():
        return path.read_text().strip()
    import psutil

    return str(int(psutil.boot_time()))


def uptime() -> float:
    """Seconds since the host's boot, sleep included: a clock that nobody sets, the same for every process."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


def _started(pid: int) -> float | None:
    if Path("/proc/self/stat").exists():
        try:
            stat = Path(f"/proc/{pid}/stat").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            return None
        fields = stat[stat.rindex(b")") + 2 :].split()
        return None if fields[0] in (b"Z", b"X") else float(fields[19])
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.NoSuchProcess:
        return None
