"""The job's output, from the engine's own log into a file: every byte, once.

The container writes to pipes (no terminal), the engine keeps what came out in its ``local`` log driver, and we copy
that to ``folder/log``. The driver is the durable part: it goes on while nobody watches. It keeps bytes, where
``json-file`` replaces what is not UTF-8; it has stdout and stderr in one file of one order; and as we forbid
rotation, the n-th byte of it is the same byte on every reading. Going on after a death is therefore: read again
from the start, and leave out as many bytes as the file already has. Nothing to mark, nothing to get out of step.

Following may end before the last lines of a container that has just ended, and a stream that breaks off looks like
one that ends, so the end is checked. Each entry of the driver has a time, and those of one long line share it: the
log is whole when its last time, and how many entries have it, are those copied last.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perdure.agents.docker_engine import Engine

HEADER = 8
"""Bytes before each frame: the stream, three zeros, the length in four bytes, big-endian (Engine API, attach)."""

READ = 1 << 18

PART = 16 * 1024
"""Bytes of every entry of a longer line but its last. Docker's ``local`` driver gives that last one back without
the newline it had (seen with 20.10), so it is put back. One case cannot be told: output that ends without a newline
in a line of more than 16 KiB gets one."""


def log_config(drivers: list[str]) -> dict[str, Any]:
    """The log driver of a container, given what the engine has. Engines without ``local`` (Podman) take their
    own default, which may not keep bytes that are not UTF-8."""
    if "local" not in drivers:
        return {}
    return {"Type": "local", "Config": {"max-size": "1024t", "max-file": "1", "compress": "false"}}


class LogCopy:
    """Copies the log of one container to one file."""

    def __init__(self, engine: Engine, container_id: str, path: Path):
        self._engine = engine
        self._url = f"/containers/{container_id}/logs"
        self._path = path
        self._last = Entries()
        self.bytes_read = 0
        """Of the engine's log, by the copy under way or the last one."""

    async def copy(self, *, follow: bool) -> None:
        """Append what the engine's log has beyond the file; with ``follow``, until the container ends. May be cut
        at any moment and called again.

        Raises:
            EngineError, EngineUnreachable
        """
        self._last = entries = Entries()
        self.bytes_read = 0
        with self._path.open("ab") as log:
            skip = log.tell()
            params = {"stdout": 1, "stderr": 1, "timestamps": 1, "follow": int(follow)}
            async with self._engine.raw(self._url, params) as stream:
                while chunk := await stream.read(READ):
                    output = entries.feed(chunk)
                    self.bytes_read += len(output)
                    if skip < len(output):
                        log.write(output[skip:])
                        log.flush()
                    skip = max(0, skip - len(output))

    async def complete(self) -> bool:
        """Whether the last copy went to the end of the engine's log, which must not be growing.

        Raises:
            EngineError, EngineUnreachable
        """
        tail = Entries()
        params = {"stdout": 1, "stderr": 1, "timestamps": 1, "tail": self._last.count + 1}
        async with self._engine.raw(self._url, params) as stream:
            while chunk := await stream.read(READ):
                tail.feed(chunk)
        return (tail.time, tail.count) == (self._last.time, self._last.count)


class Entries:
    """Takes the engine's stream apart: frames of one entry each, a time and a space before its bytes."""

    def __init__(self) -> None:
        self.time = b""
        """Of the last entry."""

        self.count = 0
        """How many entries in a row, the last included, have that time."""

        self._rest = b""
        self._open: set[int] = set()
        """Streams whose last entry was a part, of a line that goes on."""

    def feed(self, chunk: bytes) -> bytes:
        """The output in the entries that this chunk completes."""
        data = self._rest + chunk
        output: list[bytes] = []
        at = 0
        while len(data) - at >= HEADER:
            end = at + HEADER + int.from_bytes(data[at + 4 : at + HEADER], "big")
            if end > len(data):
                break
            space = data.index(b" ", at + HEADER, end)
            self._saw(data[at + HEADER : space])
            output.append(self._whole(data[at], data[space + 1 : end]))
            at = end
        self._rest = data[at:]
        return b"".join(output)

    def _whole(self, stream: int, entry: bytes) -> bytes:
        last = stream in self._open and len(entry) < PART
        if len(entry) == PART and not entry.endswith(b"\n"):
            self._open.add(stream)
        else:
            self._open.discard(stream)
        return entry + b"\n" if last and not entry.endswith(b"\n") else entry

    def _saw(self, time: bytes) -> None:
        self.count = self.count + 1 if time == self.time else 1
        self.time = time
