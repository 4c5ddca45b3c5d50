"""Small disks, to be filled."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class SmallDisk:
    """A tmpfs of so many MB."""

    def __init__(self, folder: Path, megabytes: int):
        assert os.geteuid() == 0, "only root may mount: run this test as root"
        self.folder = folder
        _run("mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=755", "tmpfs", str(folder))

    def resize(self, megabytes: int) -> None:
        _run("mount", "-o", f"remount,size={megabytes}m", str(self.folder))

    @property
    def free(self) -> int:
        """Bytes."""
        disk = os.statvfs(self.folder)
        return disk.f_bavail * disk.f_frsize

    def fill(self) -> Path:
        """To the last byte; the file to delete."""
        path = self.folder / "filler"
        with path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, self.free)
        return path


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[SmallDisk]:
    disk = SmallDisk(folder, megabytes)
    try:
        yield disk
    finally:
        _run("umount", "-l", str(folder))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
