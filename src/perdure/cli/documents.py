"""Configurations: found, read, checked, and every mistake shown with its line."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from perdure.cli.errors import show_error
from perdure.cli.terminal import say
from perdure.model.errors import InvalidConfiguration, UserError
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

    @contextmanager
    def explained(self, document: Document | None = None) -> Iterator[None]:
        """Mistakes that leave this block are shown with the lines they are about; the block's caller ends with
        ``Shown``."""
        try:
            yield
        except InvalidConfiguration as error:
            errors = [document.lines.locate(one) for one in error.errors] if document is not None else error.errors
            located = InvalidConfiguration(errors, source=self.name)
            show_error(located, self.text.decode(errors="replace"))
            raise Shown from error


class Shown(Exception):
    """An error that the user has seen already: the command ends with exit code 1."""


def read(file: str | None) -> Source:
    """``file``, stdin for ``-``, or the default file of this folder.

    Raises:
        UserError: it is not there, or cannot be read.
    """
    if file == "-":
        return Source("<stdin>", Path.cwd(), sys.stdin.buffer.read(LARGEST))
    if file is None:
        file = next((name for name in DEFAULTS if Path(name).exists()), None)
        if file is None:
            raise UserError("there is no .perdure.yml here", hint="give the configuration with -f FILE")
    path = Path(file).expanduser()
    try:
        with path.open("rb") as opened:
            return Source(file, path.resolve().parent, opened.read(LARGEST))
    except FileNotFoundError:
        raise UserError(f"there is no file {file}") from None
    except IsADirectoryError:
        raise UserError(
            f"{file} is a folder", hint=f"give a file in it, such as {file.rstrip('/')}/.perdure.yml"
        ) from None
    except (OSError, ValueError) as error:
        raise UserError(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def check(document: Document) -> None:
    """
    Raises:
        InvalidConfiguration: every mistake.
    """
    from perdure import spec

    if document.get("type") == "fleet":
        spec.parse_fleet(document)
    else:
        spec.parse_run(document, document.lines)


def _tell_valid(source: Source, document: Document) -> None:
    """That it is, whether this version could run it, and what it would take that is not here."""
    from perdure import spec
    from perdure.client.inputs import environment
    from perdure.spec.refusals import refusals

    if document.get("type") == "fleet":
        say().print(f"{source.name} is valid.", markup=False)
        return
    run = spec.parse_run(document, document.lines)
    not_yet = "; ".join(message for _, message, _ in refusals(run))
    but = f"valid, but this version cannot run it yet: {not_yet}" if not_yet else "valid"
    say().print(f"{source.name} is {but}.", markup=False, soft_wrap=True)
    notes = list(spec.warnings(run))
    try:
        environment(document)
    except InvalidConfiguration as error:
        notes += [one.message for one in error.errors]
    except UserError as error:
        notes.append(error.message)
    for note in notes:
        say().print(f"  Note: {note}", markup=False, soft_wrap=True)


def validate_all(files: list[str]) -> int:
    """Of ``perdure validate``: the exit code."""
    bad = 0
    for file in files:
        try:
            source = read(file)
            with source.explained():
                document = source.load()
                with source.explained(document):
                    check(document)
        except Shown:
            bad += 1
        except UserError as error:
            show_error(error)
            bad += 1
        else:
            _tell_valid(source, document)
    return 1 if bad else 0
