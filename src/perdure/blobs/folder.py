"""Blobs in a folder of this machine: the embedded stack's store, and one that workers and clients may share."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

from perdure.model.errors import NotFound, UserError
from perdure.model.ids import code_key

PIECE = 1024**2

_HASH = re.compile(r"[0-9a-f]{64}")
_KEY = re.compile(r"(code|logs)/[A-Za-z0-9_-][A-Za-z0-9_.-]*")


class FolderBlobs:
    """``code/{sha256}`` is an archive; ``logs/{job}`` is a log, its bytes at their own offsets.

    The folder is for this user alone. A file ``installation`` in it holds the installation's id, by which a client
    on this machine knows that the folder it sees is the one the worker means.
    """

    def __init__(self, folder: Path, installation: UUID | None = None, *, durable: bool = False):
        """With ``installation`` the folder is made if need be, and marked with it. ``durable``: a log's bytes have
        reached the disk before a write returns; else a power cut, but no kill, may lose the last ones."""
        self.url = str(folder)
        self._folder = folder
        self._durable = durable
        if installation is not None:
            for path in (folder, folder / "code", folder / "logs"):
                path.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o700)
            (folder / "installation").write_text(f"{installation}\n")

    async def has_code(self, sha256: str) -> bool:
        return self._code(sha256).exists()

    async def read_code(self, sha256: str) -> AsyncIterator[bytes]:
        """The archive, in pieces of up to 1 MiB. Raises ``NotFound``."""
        try:
            file = await asyncio.to_thread(self._code(sha256).open, "rb")
        except FileNotFoundError:
            raise NotFound(f"no code {sha256[:12]} in {self._folder}") from None
        with file:
            while piece := await asyncio.to_thread(file.read, PIECE):
                yield piece

    async def write_code(self, sha256: str, pieces: AsyncIterator[bytes]) -> None:
        """Store an archive under its hash, whole; of several who do so at once, any wins.

        Raises:
            UserError: the pieces have another hash. Nothing is stored.
        """
        target = self._code(sha256)
        if target.exists():
            return
        digest = hashlib.sha256()
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=".new-")
        beside = Path(name)
        try:
            with os.fdopen(handle, "wb") as file:
                async for piece in pieces:
                    digest.update(piece)
                    await asyncio.to_thread(file.write, piece)
                if digest.hexdigest() != sha256:
                    raise UserError(f"the code that came is not the code that was announced ({sha256[:12]})")
                file.flush()
                await asyncio.to_thread(os.fsync, file.fileno())
            await asyncio.to_thread(beside.rename, target)
        finally:
            await asyncio.to_thread(beside.unlink, True)

    async def write_log(self, key: str, offset: int, data: bytes) -> None:
        """Put the bytes at their offset. The same bytes again change nothing."""
        await asyncio.to_thread(self._write_log, self._path(key), offset, data)

    async def read_log(self, key: str, offset: int, limit: int) -> bytes:
        """Up to ``limit`` bytes; fewer at the end, none past it or where there is no such log."""
        return await asyncio.to_thread(_read_log, self._path(key), offset, limit)

    async def delete(self, keys: list[str]) -> None:
        """Forget them; one that is not there is no matter."""
        for key in keys:
            await asyncio.to_thread(self._path(key).unlink, True)

    def _write_log(self, path: Path, offset: int, data: bytes) -> None:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            written = 0
            while written < len(data):
                written += os.pwrite(handle, data[written:], offset + written)
            if self._durable:
                os.fsync(handle)
        finally:
            os.close(handle)

    def _code(self, sha256: str) -> Path:
        if not _HASH.fullmatch(sha256):
            raise UserError(f"not a SHA-256: {sha256[:80]!r}")
        return self._folder / code_key(sha256)

    def _path(self, key: str) -> Path:
        """Keys are ours, and still must not lead out of the folder."""
        if not _KEY.fullmatch(key):
            raise UserError(f"not the key of a blob: {key[:80]!r}")
        return self._folder / key


def _read_log(path: Path, offset: int, limit: int) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(limit)
    except FileNotFoundError:
        return b""
