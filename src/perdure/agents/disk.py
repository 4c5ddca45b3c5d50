"""State on disk: written whole or not at all."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import logging
import os
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

_LOG = logging.getLogger("perdure.agents")
_TRY_AGAIN = 1.0
"""Seconds between two tries to write to a full disk."""

M = TypeVar("M", bound=BaseModel)


def write(path: Path, record: BaseModel, *, durable: bool = False) -> None:
    """Replace ``path`` by ``record`` in one step (mode 0600).

    A process killed at any moment leaves the old record or the new one. With ``durable`` a power cut does, too.
    """
    write_bytes(path, record.model_dump_json().encode(), durable=durable)


def write_bytes(path: Path, content: bytes, *, durable: bool = False) -> None:
    """The same with bytes."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.rename(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def read(path: Path, model: type[M]) -> M | None:
    """The record at ``path``, or None if there is none."""
    try:
        return model.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None


class Record:
    """A file that holds one record, and that may be behind while the disk is full: a stop must work then, too."""

    def __init__(self, path: Path):
        self._path = path
        self._behind: asyncio.Task[None] | None = None
        self._latest: BaseModel | None = None

    def write(self, record: BaseModel, *, durable: bool = False, must: bool = True) -> None:
        """Write it. Without ``must``, a full disk is waited for in the background.

        Raises:
            OSError
        """
        try:
            write(self._path, record, durable=durable)
            self._latest = record
        except OSError as error:
            if must or error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            self._latest = record
            _LOG.error("%s cannot be written yet: %s", self._path, error)
            if self._behind is None or self._behind.done():
                self._behind = asyncio.create_task(self._catch_up())

    async def _catch_up(self) -> None:
        while self._latest is not None:
            await asyncio.sleep(_TRY_AGAIN)
            try:
                write(self._path, self._latest, durable=True)
            except OSError:
                continue
            return


class Lock:
    """An exclusive lock that lasts as long as one open file: a killed process lets go of it, a reboot does, and a
    child that inherits ``fd`` goes on holding it."""

    def __init__(self, fd: int):
        self.fd = fd

    @classmethod
    def take(cls, path: Path) -> Lock | None:
        """Take it, or None if somebody holds it. Never waits."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        return cls(fd)

    def close(self) -> None:
        """Close this process's copy."""
        os.close(self.fd)


def held(path: Path) -> bool:
    """Whether a living process holds the lock at ``path``."""
    if not path.exists():
        return False
    lock = Lock.take(path)
    if lock is None:
        return True
    lock.close()
    return False
