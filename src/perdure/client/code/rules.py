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

from perdure.model.errors import UserError

GIT = ".gitignore"
OURS = (".dstackignore", ".perdureignore")


@dataclass(frozen=True)
class _Layer:
    """One ignore file: where its patterns start from (``""`` or ``folder/``, relative to the root), and they."""

    base: str
    spec: GitIgnoreSpec


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
            verdict = layer.spec.check_file(seen + "/" if is_folder else seen).include
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
            if layer.spec.check_file("/".join(prefix[:depth]) + "/").include:
                return True
    return False


def _read(path: Path) -> GitIgnoreSpec | None:
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        raise UserError(f"{os.fsencode(path).decode(errors='replace')} cannot be read: {error.strerror}") from None
    lines = text.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").split("\n")
    return GitIgnoreSpec.from_lines(line.removesuffix("\r") for line in lines)
