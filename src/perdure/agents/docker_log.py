"""The job's output, from the engine's own log into a file: every byte, once.

The container writes to pipes (no terminal), the engine keeps what came out in its ``local`` log driver, and we copy
that to ``folder/log``. The driver is the durable part: it goes on while nobody watches. It keeps bytes (``json-file``
replaces what is not UTF-8), in one file of one order for stdout and stderr together, and we forbid rotation, so the
n-th byte of that log is the same byte on every reading. Going on after a death is therefore: read again from the
start, and leave out as many bytes as the file already has. No marker, no clock, nothing to get out of step.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perdure.agents.docker_engine import Engine

HEADER = 8
"""Bytes before each frame: the stream, three zeros, the length in four bytes, big-endian (Engine API, attach)."""


def log_config(drivers: list[str]) -> dict[str, Any]:
    """The log driver of a container, given what the engine has. Engines without ``local`` (Podman) take their
    own default, which may not keep bytes that are not UTF-8."""
    if "local" not in drivers:
        return {}
    return {"Type": "local", "Config": {"max-size": "1024t", "max-file": "1", "compress": "false"}}


async def copy_log(engine: Engine, container_id: str, path: Path, *, follow: bool) -> int:
    """Append to the file what the engine's log has beyond it; how many bytes. With ``follow``, until the
    container ends. May be cut at any moment and called again.

    Raises:
        EngineError, EngineUnreachable
    """
    params = {"stdout": 1, "stderr": 1, "follow": int(follow)}
    with path.open("ab") as log:
        skip, added, frames = log.tell(), 0, Frames()
        async with engine.stream("GET", f"/containers/{container_id}/logs", params=params) as chunks:
            async for chunk in chunks:
                for piece in frames.split(chunk):
                    if skip >= len(piece):
                        skip -= len(piece)
                        continue
                    added += log.write(piece[skip:])
                    skip = 0
                log.flush()
    return added


class Frames:
    """Takes the multiplexed stream apart: what the frames of a chunk carry, without their headers. A header and a
    frame may span chunks."""

    def __init__(self) -> None:
        self._left = 0
        self._header = b""

    def split(self, chunk: bytes) -> Iterator[memoryview]:
        """The payloads, or parts of them, that this chunk holds, in order."""
        view, at = memoryview(chunk), 0
        while at < len(view):
            if not self._left:
                part = view[at : at + HEADER - len(self._header)]
                self._header += part
                at += len(part)
                if len(self._header) == HEADER:
                    self._left = int.from_bytes(self._header[4:], "big")
                    self._header = b""
                continue
            piece = view[at : at + self._left]
            self._left -= len(piece)
            at += len(piece)
            yield piece
