"""One part as a tar: the same files give the same bytes, on any machine and at any time."""

from __future__ import annotations

import hashlib
import os
import stat
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from perdure.client.code.entries import Entry, shown
from perdure.client.code.finding import Part
from perdure.model.errors import UserError
from perdure.model.messages import CodeRef

MTIME = 315_619_200
"""1980-01-02: a fixed time that zip files, and so Python wheels, can hold."""

IN_MEMORY = 8 * 1024**2


@dataclass(frozen=True)
class PackedCode:
    """A tar in a temporary file, and what a run is told of it."""

    ref: CodeRef
    file: IO[bytes]

    def pieces(self, size: int = 1024**2) -> Iterator[bytes]:
        self.file.seek(0)
        while piece := self.file.read(size):
            yield piece


@contextmanager
def pack(part: Part, progress: Callable[[int], None] = lambda _: None) -> Iterator[PackedCode]:
    """The archive lives as long as the block. ``progress`` hears of bytes as they are read.

    Raises:
        UserError: a file changed, went away or cannot be read.
    """
    with tempfile.SpooledTemporaryFile(max_size=IN_MEMORY) as file:
        out: Any = _Hashed(file)
        with tarfile.open(
            fileobj=out, mode="w|", format=tarfile.GNU_FORMAT, encoding="utf-8", errors="surrogateescape"
        ) as tar:
            for entry in sorted(part.found.entries, key=lambda entry: os.fsencode(entry.name)):
                _add(tar, entry, progress)
        ref = CodeRef(sha256=out.digest.hexdigest(), size=out.size, path=part.path, kind=part.kind)
        yield PackedCode(ref, file)


class _Hashed:
    """Writes through, and knows the hash and the size of what was written."""

    def __init__(self, file: IO[bytes]):
        self._file = file
        self.digest = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        self.size += len(data)
        return self._file.write(data)


class _Reported:
    """Reads through, and reports."""

    def __init__(self, file: IO[bytes], progress: Callable[[int], None]):
        self._file = file
        self._progress = progress

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._progress(len(data))
        return data


def _add(tar: tarfile.TarFile, entry: Entry, progress: Callable[[int], None]) -> None:
    info = tarfile.TarInfo(entry.name)
    info.mtime = MTIME
    match entry.kind:
        case "folder":
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(info)
        case "link":
            info.type, info.mode, info.linkname = tarfile.SYMTYPE, 0o777, entry.target
            tar.addfile(info)
        case _:
            info.mode = 0o755 if entry.executable else 0o644
            _add_file(tar, info, entry, progress)


def _add_file(tar: tarfile.TarFile, info: tarfile.TarInfo, entry: Entry, progress: Callable[[int], None]) -> None:
    try:
        handle = os.open(entry.source, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise _changed(entry, "went away") from None
    except OSError as error:
        raise UserError(
            f"{shown(entry.name)} cannot be read: {error.strerror}",
            hint="add it to .perdureignore if it is not needed",
        ) from None
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise _changed(entry, "changed")
        info.size = status.st_size
        reported: Any = _Reported(file, progress)
        try:
            tar.addfile(info, reported)
        except OSError as error:
            if error.errno is not None:
                raise UserError(f"{shown(entry.name)} cannot be packed: {error.strerror}") from None
            raise _changed(entry, "became shorter") from None


def _changed(entry: Entry, how: str) -> UserError:
    return UserError(
        f"{shown(entry.name)} {how} while it was packed", hint="run it again, or add it to .perdureignore"
    )
