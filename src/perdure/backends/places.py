"""Where things of one PERDURE_HOME go that cannot be inside of it."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

from perdure.model.errors import ControlPlaneError

ROOT_STATE = Path("/var/lib/perdure")
"""Of stacks that root starts: other uids may not enter root's home, and some programs refuse to be root."""

LONGEST_SOCKET = 103 if sys.platform == "darwin" else 107
"""Bytes of a unix socket's path, without the final zero."""


def digest(home: Path) -> str:
    """Tells this home from others on the machine."""
    return hashlib.sha256(os.fsencode(home)).hexdigest()[:12]


def root_state(home: Path) -> Path:
    """What belongs to this home but must be enterable by other uids than root's. Made if it is not there."""
    folder = ROOT_STATE / digest(home)
    for part in (ROOT_STATE, folder):
        part.mkdir(parents=True, exist_ok=True)
        part.chmod(0o711)
    return folder


def short_folder(home: Path) -> Path:
    """A folder with a short path that is ours alone. What it holds is made anew when it is missing.

    Raises:
        ControlPlaneError
    """
    folder = _short_folder(home)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        owner = folder.lstat()
    except OSError as error:
        raise ControlPlaneError(
            f"the path of {home} is too long for sockets, and {folder} cannot be made: {error.strerror}",
            hint="set PERDURE_HOME to a shorter path",
        ) from None
    if owner.st_uid != os.getuid() or owner.st_mode & 0o077:
        raise ControlPlaneError(
            f"{folder} is not this user's own", hint="remove it, or set PERDURE_HOME to a shorter path"
        )
    return folder


def short_path(home: Path, inside: str, longest: int) -> Path:
    """``home/inside`` by a path short enough that ``longest`` more bytes still make a socket's path: through a
    link in ``short_folder`` if it must be."""
    if len(os.fsencode(home / inside)) + longest <= LONGEST_SOCKET:
        return home / inside
    link = short_folder(home) / inside[0]
    if not link.is_symlink() or link.readlink() != home / inside:
        link.unlink(missing_ok=True)
        link.symlink_to(home / inside)
    return link


def outside(home: Path) -> list[Path]:
    """All that may exist of this home outside of it, for who deletes it."""
    return [ROOT_STATE / digest(home), _short_folder(home)]


def _short_folder(home: Path) -> Path:
    return Path("/tmp") / f"perdure-{os.getuid()}-{digest(home)}"  # macOS names a long one in TMPDIR
