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
    """``file``, stdin for ``-``, or the default file of this folder.

    Raises:
        Unreadable
    """
    if file == "-":
        return Source("<stdin>", Path.cwd(), sys.stdin.buffer.read(LARGEST))
    if file == "":
        raise Unreadable("a file's name is empty", hint="give the path of a configuration, or - for stdin")
    if file is None:
        file = next((name for name in DEFAULTS if Path(name).exists()), None)
        if file is None:
            raise Unreadable("there is no .perdure.yml here", hint="give the configuration with -f FILE")
    try:
        path = Path(file).expanduser()
        with path.open("rb") as opened:
            return Source(file, path.resolve().parent, opened.read(LARGEST))
    except FileNotFoundError:
        raise Unreadable(f"there is no file {file}") from None
    except IsADirectoryError:
        raise Unreadable(
            f"{file} is a folder", hint=f"give a file in it, such as {file.rstrip('/')}/.perdure.yml"
        ) from None
    except (OSError, ValueError, RuntimeError) as error:
        raise Unreadable(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
