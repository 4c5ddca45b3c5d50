"""Ignore files: git's rules, for ``.gitignore``, ``.perdureignore`` and ``.dstackignore`` alike.

A pattern is about paths below the folder of its file; a deeper file has the last word, and in one folder the
later of the three names; nothing below an ignored folder comes back.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec
from pathspec.pattern import RegexPattern

from perdure.model.errors import UserError

GIT = ".gitignore"
BYTES = "latin-1"
"""To git a name is bytes, and ``?`` stands for one of them: a character for each byte keeps it so."""

FOLDER_MARK = "ps_d"
"""pathspec's group around the slash after a folder that matched."""

OURS = (".dstackignore", ".perdureignore")


@dataclass(frozen=True)
class _Layer:
    """One ignore file: where its patterns start from (``""`` or ``folder/``, relative to the root), and they."""

    base: str
    spec: GitIgnoreSpec

    def verdict(self, path: str) -> bool | None:
        """Ignored, taken back, or nothing said; a folder ends with ``/``. The last pattern that says something of
        this very path decides: pathspec's own answer counts those that match a folder above it, too, which to git
        have decided already whether one gets here."""
        text = os.fsencode(path).decode(BYTES)
        for pattern in reversed(self.spec.patterns):
            assert isinstance(pattern, RegexPattern)
            if pattern.include is not None and _is_about(pattern, text):
                return pattern.include
        return None


def _is_about(pattern: RegexPattern, text: str) -> bool:
    matches = list(pattern.regex.finditer(text)) if pattern.regex is not None else []
    if not matches:
        return False
    match = matches[-1]
    if match.groupdict().get(FOLDER_MARK) is not None:
        return match.end(FOLDER_MARK) == len(text)
    # ``d/**`` is about what is in d, not about d.
    return not (text.endswith("/") and match.end() == len(text))


@dataclass(frozen=True)
class Rules:
    """The layers in force in one folder, the weakest first."""

    layers: tuple[_Layer, ...] = ()

    def inside(self, root: Path, folder: str, names: Sequence[str]) -> Rules:
        """The rules in ``folder`` (relative to ``root``, ``""`` for itself), with the ignore files ``names``."""
        base = f"{folder}/" if folder else ""
        layers = [_Layer(base, spec) for name in names if (spec := _read(root / folder / name)) is not None]
        return Rules((*self.layers, *layers)) if layers else self

    def with_base(self, above: str, spec: GitIgnoreSpec) -> Rules:
        """With patterns that start ``above`` the root: ``above`` is the root's path from there, with a ``/``."""
        return Rules((*self.layers, _Layer(f"\0{above}", spec)))

    def ignores(self, path: str, is_folder: bool) -> bool:
        """Of a path relative to the root, whose folder is not ignored."""
        for layer in reversed(self.layers):
            seen = layer.base[1:] + path if layer.base.startswith("\0") else path[len(layer.base) :]
            verdict = layer.verdict(seen + "/" if is_folder else seen)
            if verdict is not None:
                return verdict
        return False


def above(root: Path, top: Path) -> Rules:
    """The git rules that folders from ``top`` down to the one above ``root`` set for what is in ``root``. If they
    ignore ``root`` itself they do not count: whoever names it wants what is in it."""
    rules = Rules()
    steps = root.relative_to(top).parts
    for depth in range(len(steps)):
        spec = _read(top.joinpath(*steps[:depth], GIT))
        if spec is not None:
            rules = rules.with_base("/".join(steps[depth:]) + "/", spec)
    exclude = _read(top / ".git" / "info" / "exclude")
    if exclude is not None:
        rules = Rules((*Rules().with_base("".join(f"{step}/" for step in steps), exclude).layers, *rules.layers))
    return Rules() if _ignored(rules, steps) else rules


def _ignored(rules: Rules, steps: Sequence[str]) -> bool:
    """Whether the root, or a folder that it is in, is ignored."""
    for layer in rules.layers:
        prefix = layer.base[1:].rstrip("/").split("/") if layer.base != "\0" else []
        for depth in range(1, len(prefix) + 1):
            if layer.verdict("/".join(prefix[:depth]) + "/"):
                return True
    return False


def _read(path: Path) -> GitIgnoreSpec | None:
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        raise UserError(f"{os.fsencode(path).decode(errors='replace')} cannot be read: {error.strerror}") from None
    lines = text.removeprefix(b"\xef\xbb\xbf").decode(BYTES).split("\n")
    return GitIgnoreSpec.from_lines(line.removesuffix("\r") for line in lines)
