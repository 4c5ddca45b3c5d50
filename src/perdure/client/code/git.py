"""What git says about a folder."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from perdure.model.errors import UserError


def top_of(path: Path) -> Path | None:
    """The top of the work tree that ``path`` is in, found as git finds it; None if in none."""
    folder = path.resolve()
    return next((above for above in (folder, *folder.parents) if (above / ".git").exists()), None)


def files_of(root: Path) -> list[str]:
    """Relative paths of tracked and untracked files that are not ignored, sorted by their bytes. Submodules and
    nested repositories are one path each, the latter with a ``/``.

    Raises:
        UserError: ``root`` is in no work tree, or git fails.
    """
    return _listed(root, "--cached", "--others", "--exclude-standard")


def ignored_of(root: Path) -> list[str]:
    """Relative paths of what is ignored and not tracked; a folder that is wholly ignored is one path."""
    return [
        name for name in _listed(root, "--others", "--ignored", "--exclude-standard", "--directory") if name != "./"
    ]


def _listed(root: Path, *options: str) -> list[str]:
    program = shutil.which("git")
    if program is None:
        raise UserError(
            "git is not installed, and `repos:` needs it", hint="install git, or list the folder under `files:`"
        )
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    answer = subprocess.run(
        [program, "-c", "core.quotePath=false", "-C", root, "ls-files", "-z", *options],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environ | {"LC_ALL": "C"},
        check=False,
    )
    if answer.returncode:
        said = answer.stderr.decode(errors="replace").strip().splitlines() or ["it failed"]
        raise UserError(
            f"git cannot read {os.fsencode(root).decode(errors='replace')}: {said[0].removeprefix('fatal: ')}",
            hint="list a folder without git under `files:`",
        )
    names = {name for name in answer.stdout.split(b"\0") if name}
    return [os.fsdecode(name) for name in sorted(names)]
