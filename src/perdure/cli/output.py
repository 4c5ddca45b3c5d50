"""Logs on their way to stdout: exactly the bytes when piped, text when somebody reads."""

from __future__ import annotations

import codecs
import sys

from perdure.cli.terminal import say
from perdure.client.logs import LogPiece


class LogOutput:
    """Writes pieces as they come, and says on stderr where one attempt ends and the next begins."""

    def __init__(self) -> None:
        self._terminal = sys.stdout.isatty()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._attempt: int | None = None
        self._line_open = False

    def write(self, piece: LogPiece) -> None:
        if self._attempt is not None and piece.job.submission != self._attempt:
            self.end_line()
            say().rule(f"attempt {piece.job.submission}", style="dim")
        self._attempt = piece.job.submission
        if piece.data:
            self._put(piece.data)
        if piece.complete:
            self._finish()
        if piece.missing:
            say().print("The end of this log is missing: its host was lost before all of it was fetched.")

    def end_line(self) -> None:
        """Before something is said: an unfinished line of the job's is left behind, on a terminal."""
        if self._terminal and self._line_open:
            sys.stdout.write("\n")
            sys.stdout.flush()
            self._line_open = False

    def _put(self, data: bytes) -> None:
        if self._terminal:
            sys.stdout.write(self._decoder.decode(data))
            sys.stdout.flush()
            self._line_open = not data.endswith(b"\n")
        else:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()

    def _finish(self) -> None:
        if self._terminal:
            sys.stdout.write(self._decoder.decode(b"", final=True))
            self._decoder.reset()
            self.end_line()
