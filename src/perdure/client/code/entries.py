"""Walking a folder: every file, link and empty folder that goes along, and what is left out and why."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from perdure.client.code import git
from perdure.client.code.rules import GIT, OURS, Rules, above
from perdure.model.errors import UserError

SHOWN_LEFT_OUT = 1000
"""Paths remembered of those left out; the rest are counted."""


@dataclass(frozen=True)
class Entry:
    """One thing to pack. Paths are text as ``os.fsdecode`` gives it: odd bytes survive."""

    name: str
    """In the archive, relative."""

    kind: str
    """``file``, ``link`` or ``folder``."""

    source: Path = Path()
    """Where its bytes are."""

    size: int = 0
    executable: bool = False
    target: str = ""
    """Of a link."""


@dataclass
class Found:
    """What one part of a configuration takes along."""

    entries: list[Entry] = field(default_factory=list[Entry])
    left_out: list[str] = field(default_factory=list[str])
    left_out_count: int = 0

    def leave_out(self, name: str) -> None:
        self.left_out_count += 1
        if len(self.left_out) < SHOWN_LEFT_OUT:
            self.left_out.append(name)

    @property
    def files(self) -> int:
        return sum(entry.kind != "folder" for entry in self.entries)

    @property
    def size(self) -> int:
        return sum(entry.size for entry in self.entries)


def one_file(path: Path, name: str) -> Found:
    """A file that the configuration names, whatever ignore files say; a link counts as what it leads to."""
    status = _stat(path, follow=True)
    if not stat.S_ISREG(status.st_mode):
        raise UserError(f"{shown(path)} is neither a file nor a folder")
    return Found([_file(name, path, status)])


def folder(root: Path) -> Found:
    """What is in ``root``, as the ignore files say."""
    walk = _Walk(root)
    top = git.top_of(root)
    rules = above(root.resolve(), top) if top is not None else Rules()
    walk.walk("", rules, (GIT, *OURS))
    return walk.found


def repository(root: Path) -> Found:
    """What git would commit if everything in ``root`` were added: tracked files as they are now, and untracked
    ones that it does not ignore."""
    walk = _Walk(root)
    rules = {"": Rules().inside(root, "", OURS)}
    for name in git.files_of(root):
        hidden = _ours_ignore(root, name, rules)
        if hidden is not None:
            walk.found.leave_out(hidden)
        else:
            walk.take(name)
    for name in git.ignored_of(root):
        walk.found.leave_out(name)
    return walk.found


def _ours_ignore(root: Path, name: str, rules: dict[str, Rules]) -> str | None:
    """The path that .perdureignore or .dstackignore leave out, if they do: the file, or a folder it is in."""
    steps = name.split("/")
    for depth in range(1, len(steps) + 1):
        parent, path = "/".join(steps[: depth - 1]), "/".join(steps[:depth])
        if parent not in rules:
            rules[parent] = rules["/".join(steps[: depth - 2])].inside(root, parent, OURS)
        if rules[parent].ignores(path, depth < len(steps)):
            return path
    return None


class _Walk:
    def __init__(self, root: Path):
        self.root = root
        self.real = root.resolve()
        self.found = Found()
        self._within: list[Path] = []
        """Folders outside of the root that are being walked, for loops."""

    def walk(self, below: str, rules: Rules, names: Sequence[str]) -> None:
        """The folder ``below`` the root, and everything in it that the rules let through."""
        rules = rules.inside(self.root, below, names)
        children = _listed(self.root / below)
        packed = 0
        for child in children:
            path = f"{below}/{child}" if below else child
            status = _stat(self.root / path)
            if child == ".git" or rules.ignores(path, stat.S_ISDIR(status.st_mode)):
                self.found.leave_out(path)
                continue
            packed += 1
            if stat.S_ISDIR(status.st_mode):
                self.walk(path, rules, names)
            else:
                self._take(path, path, status)
        if below and not packed and not children:
            self.found.entries.append(Entry(below, "folder"))

    def take(self, name: str) -> None:
        """One path that git listed: a file or link, or the folder of a submodule or nested repository."""
        try:
            status = (self.root / name).lstat()
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise _unreadable(self.root / name, error) from None
        if stat.S_ISDIR(status.st_mode):
            self._submodule(name.rstrip("/"))
        else:
            self._take(name, name, status)

    def _submodule(self, name: str) -> None:
        inner = repository(self.root / name)
        self.found.entries += [
            Entry(f"{name}/{entry.name}", entry.kind, entry.source, entry.size, entry.executable, entry.target)
            for entry in inner.entries
        ]
        for left in inner.left_out:
            self.found.leave_out(f"{name}/{left}")

    def _take(self, name: str, path: str, status: os.stat_result) -> None:
        source = self.root / path
        if stat.S_ISREG(status.st_mode):
            self.found.entries.append(_file(name, source, status))
        elif stat.S_ISLNK(status.st_mode):
            self._link(name, source)
        else:
            self.found.leave_out(f"{name} (not a file)")

    def _link(self, name: str, source: Path) -> None:
        """Kept if it leads to somewhere in the root, else what it leads to takes its place."""
        target = source.readlink()
        here = (self.real / name).parent
        aim = Path(os.path.normpath(here / target))
        if aim.is_relative_to(self.real):
            kept = os.path.relpath(aim, here) if target.is_absolute() else str(target)
            self.found.entries.append(Entry(name, "link", source, target=kept))
            return
        status = _stat(
            source, follow=True, what=f"{shown(name)} is a link to {shown(target)}, outside of the folder, which"
        )
        if stat.S_ISREG(status.st_mode):
            self.found.entries.append(_file(name, source, status))
        elif stat.S_ISDIR(status.st_mode):
            self._outside(name, source)
        else:
            self.found.leave_out(f"{name} (not a file)")

    def _outside(self, name: str, source: Path) -> None:
        real = source.resolve()
        around = [self.real, *self._within]
        if any(other.is_relative_to(real) for other in around):
            raise UserError(
                f"{shown(name)} is a link to {shown(real)}, which it is in itself: a loop",
                hint="add it to .perdureignore",
            )
        self._within.append(real)
        children = _listed(source)
        if not children:
            self.found.entries.append(Entry(name, "folder"))
        for child in children:
            inner, path = f"{name}/{child}", source / child
            status = _stat(path)
            if child == ".git":
                self.found.leave_out(inner)
            elif stat.S_ISDIR(status.st_mode):
                self._outside(inner, path)
            elif stat.S_ISLNK(status.st_mode):
                self._inlined(inner, path)
            elif stat.S_ISREG(status.st_mode):
                self.found.entries.append(_file(inner, path, status))
            else:
                self.found.leave_out(f"{inner} (not a file)")
        self._within.pop()

    def _inlined(self, name: str, path: Path) -> None:
        """A link in a folder that is itself inlined: what it leads to."""
        status = _stat(path, follow=True, what=f"{shown(name)} is a link that")
        if stat.S_ISDIR(status.st_mode):
            self._outside(name, path)
        elif stat.S_ISREG(status.st_mode):
            self.found.entries.append(_file(name, path, status))
        else:
            self.found.leave_out(f"{name} (not a file)")


def shown(path: str | Path) -> str:
    """A path for a message: odd bytes and control characters made visible."""
    text = os.fsencode(path).decode("utf-8", "replace")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _file(name: str, source: Path, status: os.stat_result) -> Entry:
    return Entry(name, "file", source, status.st_size, bool(status.st_mode & stat.S_IXUSR))


def _listed(path: Path) -> list[str]:
    try:
        return sorted((child.name for child in path.iterdir()), key=os.fsencode)
    except OSError as error:
        raise _unreadable(path, error) from None


def _stat(path: Path, *, follow: bool = False, what: str | None = None) -> os.stat_result:
    try:
        return path.stat(follow_symlinks=follow)
    except OSError as error:
        raise _unreadable(path, error, what) from None


def _unreadable(path: Path, error: OSError, what: str | None = None) -> UserError:
    said = what or shown(path)
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return UserError(
            f"{said} is not there", hint=None if what is None else "mend the link, or add it to .perdureignore"
        )
    return UserError(
        f"{said} cannot be read: {error.strerror}", hint="add it to .perdureignore if it is not needed"
    )
