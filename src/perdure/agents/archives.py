"""Unpacks code: every name, byte, exec bit and symlink as packed, and nothing outside of the destination.

Folders are opened one component at a time and never through a symlink, so that neither ``..``, nor an absolute
name, nor a link of the archive or of an earlier job leads out. A symlink's own text is kept, whatever it says.
Set-id bits, owners and device files are not taken over.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_BUFFER = 1 << 20


class UnsafeArchive(Exception):
    """What the archive asks for is not done; says which member and why."""


def unpack(archive: Path, root: Path, below: PurePosixPath, *, owner: tuple[int, int] | None = None) -> None:
    """Unpack a tar (compressed or not) into ``root / below``, which is made if need be.

    Files there already are replaced. What is new belongs to ``owner`` (uid, gid) if given.

    Raises:
        UnsafeArchive
    """
    try:
        with tarfile.open(archive, "r:*") as tar, _folder(root, _parts(str(below)), owner) as top:
            _Unpacking(tar, top, owner).all()
    except tarfile.TarError as error:
        raise UnsafeArchive(f"It is not a readable tar archive: {error}.") from error


def make_folder(root: Path, below: PurePosixPath, *, owner: tuple[int, int] | None = None) -> None:
    """Make ``root / below`` with the same care."""
    with _folder(root, _parts(str(below)), owner):
        pass


def is_empty(root: Path, below: PurePosixPath) -> bool:
    """Whether ``root / below`` is an empty folder or nothing."""
    folder = root / below
    return not folder.exists() or not any(folder.iterdir())


class _Unpacking:
    def __init__(self, tar: tarfile.TarFile, top: int, owner: tuple[int, int] | None):
        self._tar = tar
        self._top = top
        self._owner = owner
        self._folders: list[tuple[list[str], tarfile.TarInfo]] = []

    def all(self) -> None:
        for member in self._tar:
            self._one(member)
        for parts, member in reversed(self._folders):
            with _folder(self._top, parts, self._owner) as fd:
                os.fchmod(fd, member.mode & 0o777)
                os.utime(fd, (member.mtime, member.mtime))

    def _one(self, member: tarfile.TarInfo) -> None:
        parts = _parts(member.name)
        if member.isdir():
            with _folder(self._top, parts, self._owner):
                self._folders.append((parts, member))
            return
        if not parts:
            raise UnsafeArchive(f"{member.name!r} names no file.")
        with _folder(self._top, parts[:-1], self._owner) as parent:
            _clear(parent, parts[-1], member)
            if member.isreg():
                self._file(parent, parts[-1], member)
            elif member.issym():
                os.symlink(member.linkname, parts[-1], dir_fd=parent)
                if self._owner:
                    os.chown(parts[-1], *self._owner, dir_fd=parent, follow_symlinks=False)
            elif member.islnk():
                self._hard_link(parent, parts[-1], member)
            else:
                raise UnsafeArchive(f"{member.name!r} is a device or a pipe.")

    def _file(self, parent: int, name: str, member: tarfile.TarInfo) -> None:
        source = self._tar.extractfile(member)
        assert source is not None
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(name, flags, 0o600, dir_fd=parent), "wb") as file:
            shutil.copyfileobj(source, file, _BUFFER)
            file.flush()
            if self._owner:
                os.fchown(file.fileno(), *self._owner)
            os.fchmod(file.fileno(), member.mode & 0o777)
            os.utime(file.fileno(), (member.mtime, member.mtime))

    def _hard_link(self, parent: int, name: str, member: tarfile.TarInfo) -> None:
        target = _parts(member.linkname)
        if not target:
            raise UnsafeArchive(f"{member.name!r} links to no file.")
        with _folder(self._top, target[:-1], self._owner) as other:
            try:
                os.link(target[-1], name, src_dir_fd=other, dst_dir_fd=parent, follow_symlinks=False)
            except FileNotFoundError:
                raise UnsafeArchive(f"{member.name!r} links to {member.linkname!r}, which is not there.") from None


@contextlib.contextmanager
def _folder(top: int | Path, parts: list[str], owner: tuple[int, int] | None) -> Iterator[int]:
    """``top`` and the folders below it, made if need be, as an open descriptor."""
    fd = os.dup(top) if isinstance(top, int) else os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            with contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=fd)
                if owner:
                    os.chown(part, *owner, dir_fd=fd, follow_symlinks=False)
            try:
                below = os.open(part, _FOLDER, dir_fd=fd)
            except OSError as error:
                if error.errno in (errno.ELOOP, errno.ENOTDIR):
                    raise UnsafeArchive(
                        f"{'/'.join(parts)!r} goes through {part!r}, which is not a folder."
                    ) from None
                raise
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)


def _clear(parent: int, name: str, member: tarfile.TarInfo) -> None:
    """Make room for a member that is there already: an earlier file, never a folder."""
    try:
        os.unlink(name, dir_fd=parent)
    except FileNotFoundError:
        pass
    except (IsADirectoryError, PermissionError):
        raise UnsafeArchive(f"{member.name!r} would replace a folder.") from None


def _parts(name: str) -> list[str]:
    if name.startswith("/"):
        raise UnsafeArchive(f"{name!r} is an absolute path.")
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise UnsafeArchive(f"{name!r} leads out of its folder.")
    return parts
