"""Configurations: found and read."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from perdure.model.errors import UserError
from perdure.spec.document import Document, load_yaml

DEFAULTS = (".perdure.yml", ".perdure.yaml", ".dstack.yml", ".dstack.yaml")
LARGEST = 1024 * 1024
"""Bytes read of a file; ``load_yaml`` takes less, and says so."""

_ELSEWHERE = "give the configuration with -f FILE"


@dataclass(frozen=True)
class Source:
    """A configuration's text, and where it is from."""

    name: str
    """For messages: the path as given, or ``<stdin>``."""

    folder: Path
    """What relative paths in it start from."""

    text: bytes

    def load(self) -> Document:
        """
        Raises:
            InvalidConfiguration: it is not YAML, or not a mapping.
        """
        return load_yaml(self.text, self.name)


class Unreadable(UserError):
    """A file that is not there, or that may not be read."""


def read(file: str | None) -> Source:
    """``file``, stdin for ``-``, or the default file of this folder. A pipe is read to its end.

    Raises:
        Unreadable
    """
    if file == "-":
        return _read_stdin()
    if file == "":
        raise Unreadable("a file's name is empty", hint="give the path of a configuration, or - for stdin")
    if file is None:
        file = _default()
    name = printable(file)
    try:
        path = Path(file).expanduser()
        with path.open("rb") as opened:
            return Source(name, path.resolve().parent, opened.read(LARGEST))
    except FileNotFoundError:
        raise Unreadable(f"there is no file {name}") from None
    except IsADirectoryError:
        raise Unreadable(
            f"{name} is a folder", hint=f"give a file in it, such as {name.rstrip('/')}/.perdure.yml"
        ) from None
    except (OSError, ValueError, RuntimeError) as error:
        raise Unreadable(f"{name} cannot be read: {_why(error)}") from None


def printable(file: str) -> str:
    """A file's name as text: bytes of it that are none are shown as ``\\xff``."""
    return file.encode(errors="surrogateescape").decode(errors="backslashreplace")


def _read_stdin() -> Source:
    try:
        return Source("<stdin>", Path.cwd(), sys.stdin.buffer.read(LARGEST))
    except FileNotFoundError:
        raise Unreadable("the folder that you are in is deleted") from None
    except OSError as error:
        raise Unreadable(f"stdin cannot be read: {_why(error)}") from None


def _default() -> str:
    for name in DEFAULTS:
        try:
            Path(name).stat()
        except FileNotFoundError:
            continue
        except OSError as error:
            raise Unreadable(f"{name} cannot be read: {_why(error)}", hint=_ELSEWHERE) from None
        return name
    raise Unreadable("there is no .perdure.yml here", hint=_ELSEWHERE)


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
