"""Blobs: code archives by their hash, and the logs of jobs, in a folder (S3 comes with the aws backend)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol


class BlobStore(Protocol):
    """Code is immutable and named by its SHA-256. A log is the bytes a job wrote; the bytes at an offset never
    change, so a write may be repeated, and only what Postgres says is committed is read."""

    url: str

    async def has_code(self, sha256: str) -> bool: ...

    def read_code(self, sha256: str) -> AsyncIterator[bytes]:
        """The archive, in pieces of up to 1 MiB. Raises ``NotFound``."""
        ...

    async def write_code(self, sha256: str, pieces: AsyncIterator[bytes]) -> None:
        """Store an archive; a wrong hash stores nothing and raises. Atomic; storing it again does nothing."""
        ...

    async def write_log(self, key: str, offset: int, data: bytes) -> None: ...

    async def read_log(self, key: str, offset: int, limit: int) -> bytes: ...

    async def delete(self, keys: list[str]) -> None: ...
