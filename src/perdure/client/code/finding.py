"""From ``files:`` and ``repos:`` to what goes along, before anything is packed."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from perdure.client.code import entries
from perdure.client.code.entries import Found, shown
from perdure.model.errors import CodeTooLarge, FieldError, InvalidConfiguration, UserError
from perdure.spec.grammar.mounts import FileMapping, RepoSpec

BIGGEST = 10


@dataclass(frozen=True)
class Part:
    """One item of ``files:`` or ``repos:``: what is found, and where it is unpacked in the job."""

    local: str
    """As written."""

    path: str
    kind: Literal["repo", "files"]
    found: Found


def find(files: Sequence[FileMapping], repos: Sequence[RepoSpec], folder: Path) -> list[Part]:
    """Look at everything on this machine that the configuration names. Relative paths start from ``folder``.

    Raises:
        InvalidConfiguration: a path that is not there; all of them are listed.
        UserError: something in a folder cannot be packed.
    """
    _check(files, repos, folder)
    parts = [_repo(repo, folder) for repo in repos]
    return parts + [_files(mapping, folder) for mapping in files]


def check_limit(parts: Sequence[Part], limit: int) -> None:
    """``limit``: bytes of one archive, uncompressed; 0 is none.

    Raises:
        CodeTooLarge: names the biggest paths.
    """
    for part in parts:
        size = part.found.size
        if limit and size > limit:
            biggest = "".join(f"\n  {_megabytes(size):>10}  {shown(name)}" for name, size in _biggest(part.found))
            raise CodeTooLarge(
                f"{part.kind}: {shown(part.local)} is {_megabytes(size)}, and {_megabytes(limit)} may be uploaded",
                hint=f"leave out what is not needed in .perdureignore; the biggest are:{biggest}",
            )


def _check(files: Sequence[FileMapping], repos: Sequence[RepoSpec], folder: Path) -> None:
    errors: list[FieldError] = []
    for index, repo in enumerate(repos):
        path = f"repos[{index}]"
        if repo.local_path is None:
            hint = "clone it, and give the path of the clone"
            errors.append(FieldError(path=path, message="a repository by URL is not supported yet", hint=hint))
        elif not _local(repo.local_path, folder).is_dir():
            errors.append(FieldError(path=path, message=f"there is no folder {shown(repo.local_path)}"))
    for index, mapping in enumerate(files):
        if not _local(mapping.local_path, folder).exists():
            hint = f"it is looked for from {folder}"
            message = f"there is no file or folder {shown(mapping.local_path)}"
            errors.append(FieldError(path=f"files[{index}]", message=message, hint=hint))
    if errors:
        raise InvalidConfiguration(errors)


def _repo(repo: RepoSpec, folder: Path) -> Part:
    local = repo.local_path or "."
    return Part(local, repo.path, "repo", entries.repository(_local(local, folder)))


def _files(mapping: FileMapping, folder: Path) -> Part:
    """A folder is unpacked at its path in the job; a file in the folder of its path, under the last name of it."""
    local = _local(mapping.local_path, folder)
    if local.is_dir():
        return Part(mapping.local_path, mapping.path, "files", entries.folder(local))
    path = mapping.path
    if path.endswith("/") or path in (".", "..", "~"):
        path = posixpath.join(path, local.name)
    where, name = posixpath.split(posixpath.normpath(path))
    if not name or name == "..":
        raise UserError(f"files: {mapping.path!r} is no path for a file", hint="write local:path/in/job")
    return Part(mapping.local_path, where or ".", "files", entries.one_file(local, name))


def _local(path: str, folder: Path) -> Path:
    return Path(os.path.normpath(folder / Path(path).expanduser()))


def _biggest(found: Found) -> list[tuple[str, int]]:
    """The biggest files; if those are but a small share of it all, the biggest folders."""
    files = sorted(((entry.name, entry.size) for entry in found.entries), key=lambda one: -one[1])[:BIGGEST]
    if sum(size for _, size in files) * 5 >= found.size:
        return files
    folders: dict[str, int] = {}
    for entry in found.entries:
        steps = entry.name.split("/")
        top = (
            "/".join(steps[:2]) + "/"
            if len(steps) > 2
            else "/".join(steps[:-1]) + "/"
            if len(steps) > 1
            else entry.name
        )
        folders[top] = folders.get(top, 0) + entry.size
    return sorted(folders.items(), key=lambda one: -one[1])[:BIGGEST]


def _megabytes(size: float) -> str:
    return f"{size / 1024**2:.1f} MiB"
