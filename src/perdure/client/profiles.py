"""Profiles: what ``profiles.yml`` files say below a configuration, and which one of them holds.

Files: ``.perdure/profiles.yml`` and ``.dstack/profiles.yml`` (or ``.yaml``) in the working directory, then in the
home folder. Which profile: none if that is asked for, else the one asked for, else what ``PERDURE_NO_PROFILE`` and
``PERDURE_PROFILE`` say (or ``DSTACK_…``), else the first that is ``default: true``, else none.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.model.errors import FieldError, InvalidConfiguration, NotFound, UserError
from perdure.model.nearest import nearest
from perdure.spec import load_yaml, parse_profiles
from perdure.spec.document import MAX_BYTES, PROFILES, Document, split_path

FOLDERS = (".perdure", ".dstack")
PREFIXES = ("PERDURE", "DSTACK")


class InvalidProfiles(InvalidConfiguration):
    """A file of profiles is not right."""

    def __init__(self, error: InvalidConfiguration, text: str):
        """``text``: of the file as it was read, which may be another one by now."""
        super().__init__(error.errors, source=error.source)
        self.text = text


class UnreadableProfiles(UserError):
    """A file of profiles may not be read, or is none."""

    def __init__(self, source: str, why: str):
        super().__init__(f"{source} cannot be read: {why}", hint="--no-profile goes without")
        self.source = source


@dataclass(frozen=True)
class Profile:
    """One profile, and where it is written."""

    name: str
    mapping: dict[str, Any]
    """As one item of ``profiles:``."""

    document: Document
    """The file it is in."""

    index: int
    text: str
    """Of the file."""

    @property
    def source(self) -> str:
        """The file's name, for messages."""
        return self.document.source

    def locate(self, error: FieldError) -> FieldError:
        """An error of a field of this profile, with its place in the file."""
        path = f"profiles[{self.index}]" + (f".{error.path}" if error.path else "")
        place = self.document.lines.at(split_path(path))
        return error.but(line=place.line, column=place.column)


def chosen(
    asked: str | None = None,
    *,
    none: bool = False,
    folder: Path | None = None,
    home: Path | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Profile | None:
    """The profile that holds, or None.

    Args:
        asked: by name.
        none: no profile is wanted.
        folder: by default the working directory.

    Raises:
        NotFound: there is none of the name asked for.
        InvalidProfiles: a file that had to be read is not right; with every mistake in it.
        UnreadableProfiles
    """
    if none:
        return None
    name = asked
    if name is None:
        if any(_set(environ, f"{prefix}_NO_PROFILE") for prefix in PREFIXES):
            return None
        name = next((environ[key] for prefix in PREFIXES if environ.get(key := f"{prefix}_PROFILE")), None)
    known: dict[str, None] = {}
    for profile, default in _all(folder or _here(), home or _home()):
        if profile.name == name or (name is None and default):
            return profile
        known[profile.name] = None
    if name is None:
        return None
    raise NotFound(f"there is no profile {name!r}", hint=_hint(name, list(known)))


def names(folder: Path | None = None, home: Path | None = None) -> list[str]:
    """Of every profile that can be asked for."""
    found = (profile.name for profile, _ in _all(folder or _here(), home or _home()))
    return [name for name in dict.fromkeys(found) if name]


def files(folder: Path | None, home: Path | None) -> list[Path]:
    """Those that there are, in the order in which they are asked; none in a folder that may not be entered."""
    bases = dict.fromkeys(base for base in (folder, home) if base is not None)
    paths = [base / inner / name for base in bases for inner in FOLDERS for name in PROFILES]
    return [path for path in paths if _there(path)]


def _there(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError:
        return False


def _all(folder: Path | None, home: Path | None) -> Iterator[tuple[Profile, bool]]:
    """Each profile with whether it is a default one. A file is read only when it is come to."""
    for path in files(folder, home):
        source = _shown(path, folder)
        text = _text(path, source)
        try:
            document = load_yaml(text, source)
            parsed = parse_profiles(document)
        except InvalidConfiguration as error:
            raise InvalidProfiles(error, text.decode(errors="replace")) from error
        for index, profile in enumerate(parsed):
            mapping = dict(document["profiles"][index])
            yield Profile(profile.name, mapping, document, index, text.decode()), profile.default


def _text(path: Path, source: str) -> bytes:
    """
    Raises:
        UnreadableProfiles: it is not a file, either: nobody writes to a pipe of this name.
    """
    try:
        with open(path, "rb", opener=_without_waiting) as opened:
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                raise UnreadableProfiles(source, "it is not a file")
            return opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise UnreadableProfiles(source, error.strerror or str(error)) from None


def _without_waiting(path: str, flags: int) -> int:
    """A pipe is opened, whether or not somebody writes to it."""
    return os.open(path, flags | os.O_NONBLOCK)


def _shown(path: Path, folder: Path | None) -> str:
    shown = path.relative_to(folder) if folder is not None and path.is_relative_to(folder) else path
    return os.fsencode(shown).decode(errors="backslashreplace")


def _here() -> Path | None:
    """None if it is deleted."""
    try:
        return Path.cwd()
    except OSError:
        return None


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:
        return None


def _set(environ: Mapping[str, str], name: str) -> bool:
    return environ.get(name, "").lower() not in ("", "0", "false", "no", "off")


def _hint(name: str, known: list[str]) -> str:
    if near := nearest(name, known):
        return f"did you mean {near}?"
    if known:
        return f"there {'are' if len(known) > 1 else 'is'} {', '.join(known[:20])}"
    return "profiles are written in .perdure/profiles.yml, here or in your home folder"
