"""The program's stdin, stdout and stderr, whatever it was started with: closed, full, or in another encoding."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Any


class _Stdout(FileIO):
    """Remembers what could not be written: a buffer above it forgets."""

    loss: str | None = None

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            if error.errno != errno.EPIPE:
                self.loss = error.strerror
            raise


def prepare() -> None:
    """Every stream is there, and takes every text.

    Whoever closes stdin or stdout finds out when it is used, as of a full disk: its number goes to
    something that cannot be read or written, and so to nothing that is opened later. Nobody misses stderr.
    """
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_WRONLY))
    if sys.stdout is None:
        sys.__stdout__ = sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", errors="backslashreplace")
    sys.stdout = TextIOWrapper(
        BufferedWriter(_Stdout(sys.stdout.fileno(), "w", closefd=False)),
        encoding=sys.stdout.encoding,
        errors="backslashreplace",
        line_buffering=sys.stdout.isatty(),
    )


def loss() -> str | None:
    """Why what is written to stdout does not arrive. None: it does, or nobody wants it any more (``| head``)."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return raw.loss if isinstance(raw, _Stdout) else None
