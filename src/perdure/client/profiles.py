"""Profiles: what ``profiles.yml`` files say below a configuration, and which one of them holds.

Files: ``.perdure/profiles.yml`` and ``.dstack/profiles.yml`` (or ``.yaml``) in the working directory, then in the
home folder. Which profile: none if that is asked for, else the one asked for, else what ``PERDURE_NO_PROFILE`` and
``PERDURE_PROFILE`` say (or ``DSTACK_…``), else the first that is ``default: true``, else none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.model.errors import FieldError, NotFound, UserError
from perdure.model.nearest import nearest
from perdure.spec import load_yaml, parse_profiles
from perdure.spec.document import MAX_BYTES, PROFILES, Document, split_path

FOLDERS = (".perdure", ".dstack")
PREFIXES = ("PERDURE", "DSTACK")


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
        InvalidConfiguration: a file that had to be read is not right; with every mistake in it.
        UserError: a file cannot be read.
    """
    if none:
        return None
    name = asked
    if name is None:
        if any(_set(environ, f"{prefix}_NO_PROFILE") for prefix in PREFIXES):
            return None
        name = next((environ[key] for prefix in PREFIXES if environ.get(key := f"{prefix}_PROFILE")), None)
    known: dict[str, None] = {}
    for profile, default in _all(folder or Path.cwd(), home or _home()):
        if profile.name == name or (name is None and default):
            return profile
        known[profile.name] = None
    if name is None:
        return None
    raise NotFound(f"there is no profile {name!r}", hint=_hint(name, list(known)))


def names(folder: Path | None = None, home: Path | None = None) -> list[str]:
    """Of every profile that can be asked for."""
    found = (profile.name for profile, _ in _all(folder or Path.cwd(), home or _home()))
    return [name for name in dict.fromkeys(found) if name]


def files(folder: Path, home: Path | None) -> list[Path]:
    """Those that there are, in the order in which they are asked; none in a folder that may not be entered."""
    bases = dict.fromkeys(base for base in (folder, home) if base is not None)
    paths = [base / inner / name for base in bases for inner in FOLDERS for name in PROFILES]
    return [path for path in paths if _there(path)]


def _there(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError:
        return False


def _all(folder: Path, home: Path | None) -> Iterator[tuple[Profile, bool]]:
    """Each profile with whether it is a default one. A file is read only when it is come to."""
    for path in files(folder, home):
        text = _text(path)
        document = load_yaml(text, _shown(path, folder))
        for index, profile in enumerate(parse_profiles(document)):
            mapping = dict(document["profiles"][index])
            yield Profile(profile.name, mapping, document, index, text.decode()), profile.default


def _text(path: Path) -> bytes:
    try:
        with path.open("rb") as opened:
            return opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}", hint="--no-profile goes without") from None


def _shown(path: Path, folder: Path) -> str:
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)


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
