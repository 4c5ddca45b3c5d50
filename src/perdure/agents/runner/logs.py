"""Reads the job's log file from an offset, and wakes who waits for more as soon as a byte is written."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

PAGE = 1 << 20
"""Most bytes of one answer."""

_POLL = 0.02
_IN_MODIFY, _IN_NONBLOCK, _IN_CLOEXEC = 0x2, 0o4000, 0o2000000


class Log:
    """``over`` says whether the job has ended and nothing more will be written."""

    def __init__(self, path: Path, over: Callable[[], bool]):
        self._path = path
        self._over = over
        self._woken = asyncio.Event()
        self._watching = False

    def length(self) -> int:
        """Bytes there are."""
        try:
            return self._path.stat().st_size
        except FileNotFoundError:
            return 0

    def wake(self) -> None:
        """Let waiting readers look again."""
        self._woken.set()
        self._woken = asyncio.Event()

    async def read(self, offset: int, wait: float) -> tuple[bytes, int, bool]:
        """Bytes from ``offset``, the log's length, and whether that length is final.

        Waits up to ``wait`` seconds for a first byte, unless there will be none.
        """
        deadline = time.monotonic() + wait
        self._watch()
        while True:
            woken = self._woken
            over = self._over()
            length = self.length()
            if length > offset or over or (left := deadline - time.monotonic()) <= 0:
                break
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(woken.wait(), left if self._watching else min(left, _POLL))
        return self._slice(offset), length, over

    def _slice(self, offset: int) -> bytes:
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return b""
        try:
            return os.pread(fd, PAGE, offset)
        finally:
            os.close(fd)

    def _watch(self) -> None:
        """Have the kernel tell of writes (inotify), where it can; readers poll elsewhere."""
        if self._watching or sys.platform != "linux" or not self._path.exists():
            return
        libc = ctypes.CDLL(None, use_errno=True)
        fd = libc.inotify_init1(_IN_NONBLOCK | _IN_CLOEXEC)
        if fd < 0:
            return
        if libc.inotify_add_watch(fd, os.fsencode(self._path), _IN_MODIFY) < 0:
            os.close(fd)
            return
        asyncio.get_running_loop().add_reader(fd, self._told, fd)
        self._watching = True

    def _told(self, fd: int) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(fd, 4096)
        self.wake()
