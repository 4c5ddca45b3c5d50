"""Lays out a process job's folder and writes down for the keeper what to run, where and as whom."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pydantic import BaseModel

from perdure.agents import archives, identity
from perdure.agents.environment import job_environment, mpi_hostfile
from perdure.agents.execution import ExecutionError
from perdure.agents.instance import Instance
from perdure.agents.process import sandbox, tree
from perdure.agents.process.files import ProcessFiles
from perdure.agents.process.user import JobUser
from perdure.agents.protocol import SubmitBody, TaskConfig
from perdure.model.statuses import JobReason

_FROM_HOST = ("PATH", "LANG", "LC_ALL", "TZ", "http_proxy", "https_proxy", "no_proxy", "LD_LIBRARY_PATH")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class KeeperSpec(BaseModel):
    """What the keeper reads, as ``marshal`` writes it: both sides are one interpreter.

    ``uid`` None: as whoever it is itself. ``sandbox`` empty: without one.
    """

    folder: str
    path: str
    boot: str
    python: str
    argv: list[str]
    env: dict[str, str]
    cwd: str
    uid: int | None
    gid: int
    groups: list[int]
    sandbox: list[str]


@dataclass(frozen=True)
class Places:
    """Paths as the job sees them, and where each really is: the longest prefix of ``real`` decides."""

    working_dir: PurePosixPath
    targets: tuple[PurePosixPath, ...]
    """One an archive."""

    real: dict[PurePosixPath, Path]
    binds: tuple[tuple[Path, Path], ...]
    """(on the host, in the job), outer ones first."""

    def on_host(self, seen: PurePosixPath) -> tuple[Path, PurePosixPath]:
        """A folder that is there, and the rest of the way from it."""
        base = max((path for path in self.real if seen.is_relative_to(path)), key=lambda path: len(path.parts))
        return self.real[base], seen.relative_to(base)


def places(job: SubmitBody, task: TaskConfig, files: ProcessFiles) -> Places:
    """Where everything of a job goes.

    Raises:
        ExecutionError: a path leads out of the job's folder.
    """
    home = PurePosixPath(files.home)
    working_dir = _resolve(job.working_dir or ".", home, home)
    targets = tuple(_resolve(archive.path, working_dir, home) for archive in job.archives)
    mounts: dict[PurePosixPath, Path] = {}
    for mount in task.instance_mounts:
        source = Path(mount.instance_path)
        if source.exists() or not mount.optional:
            mounts[_resolve(mount.path, working_dir, home)] = source
    given = [home, *mounts]
    own = [path for path in targets if not _below_any(path, given)]
    if not _below_any(working_dir, given) and not Path(working_dir).is_dir():
        own.append(working_dir)
    roots = {path for path in own if not any(path != other and path.is_relative_to(other) for other in own)}
    private = {path: files.root / path.relative_to("/") for path in roots}
    binds = [(real, Path(seen)) for seen, real in sorted({**private, **mounts}.items()) if Path(seen) != real]
    return Places(working_dir, targets, {home: files.home, **private, **mounts}, tuple(binds))


def build(
    job: SubmitBody,
    task: TaskConfig,
    files: ProcessFiles,
    where: Places,
    user: JobUser,
    instance: Instance,
    bwrap: str | None,
) -> KeeperSpec:
    """Make the folders, unpack the code, and say what to run.

    Raises:
        ExecutionError
    """
    if where.binds and bwrap is None:
        raise ExecutionError(
            JobReason.EXECUTOR_ERROR,
            f"{where.binds[0][1]} is outside of the job's folder, and this host has no working bubblewrap to give "
            "the job its own. Use a relative path, install bubblewrap, or name an image.",
        )
    if not job.commands:
        raise ExecutionError(
            JobReason.EXECUTOR_ERROR, "There is nothing to run: it has neither commands nor an image."
        )
    owner = (user.uid, user.gid) if user.change else None
    if files.own.exists():
        shutil.rmtree(files.own)  # of a runner that was killed while it did this
    _make_folders(files, where, task, owner)
    _unpack(job, files, where, owner)
    hostfile = files.own / "hostfile"
    hostfile.write_text(mpi_hostfile(job))
    environment = {name: os.environ[name] for name in _FROM_HOST if name in os.environ}
    environment = {"PATH": _PATH, **environment, "HOME": str(files.home), "USER": user.name, "LOGNAME": user.name}
    environment |= job_environment(job, str(where.working_dir), str(hostfile))
    words = [] if bwrap is None else _sandbox(bwrap, files, where, user, instance)
    return KeeperSpec(
        folder=str(files.task),
        path=str(files.spec),
        boot=identity.boot_id(),
        python=str(Path(sys.executable).resolve()),
        argv=job.commands,
        env=environment | {tree.MARK: str(task.id)},
        cwd=str(where.working_dir),
        uid=user.uid if user.change else None,
        gid=user.gid,
        groups=list(user.groups),
        sandbox=words,
    )


def _sandbox(bwrap: str, files: ProcessFiles, where: Places, user: JobUser, instance: Instance) -> list[str]:
    hidden = instance.hidden(files.task.parent.parent)
    if not any(files.own.is_relative_to(path) for path in hidden):
        hidden.append(files.own.parent)
    if user.change and (closed := _closed(files.own, user)) is not None:
        hidden.insert(0, closed)
    return sandbox.arguments(bwrap, hidden=hidden, kept=[files.own], binds=where.binds)


def _closed(path: Path, user: JobUser) -> Path | None:
    """The first folder on the way to ``path`` that the user may not enter. What is in it is nothing to him, so it
    may be hidden to let him through."""
    for folder in reversed(path.parents):
        status = folder.stat()
        shift = 6 if status.st_uid == user.uid else 3 if status.st_gid in user.groups else 0
        if not status.st_mode >> shift & 0o1:
            return folder
    return None


def _make_folders(files: ProcessFiles, where: Places, task: TaskConfig, owner: tuple[int, int] | None) -> None:
    for folder in (
        files.own,
        files.home,
        *(path for path in where.real.values() if path.is_relative_to(files.root)),
    ):
        folder.mkdir(parents=True, exist_ok=True)
        if owner:
            os.chown(folder, *owner)
    files.own.chmod(0o700)
    for mount in task.instance_mounts:
        source = Path(mount.instance_path)
        if not source.exists() and not mount.optional:
            source.mkdir(parents=True)
            source.chmod(0o777)
    if _below_any(where.working_dir, list(where.real)):
        archives.make_folder(*where.on_host(where.working_dir), owner=owner)


def _unpack(job: SubmitBody, files: ProcessFiles, where: Places, owner: tuple[int, int] | None) -> None:
    for archive, target in zip(job.archives, where.targets, strict=True):
        root, below = where.on_host(target)
        if archive.kind == "repo" and not archives.is_empty(root, below):
            if job.repo_exists_action == "skip":
                continue
            raise ExecutionError(
                JobReason.CONTAINER_EXITED_WITH_ERROR,
                f"{target} is not empty, so the repository is not put there. "
                "Set `if_exists: skip` to keep what is there.",
            )
        try:
            archives.unpack(files.task / "archives" / archive.sha256, root, below, owner=owner)
        except archives.UnsafeArchive as error:
            raise ExecutionError(JobReason.EXECUTOR_ERROR, f"The code could not be unpacked: {error}") from error


def _resolve(path: str, base: PurePosixPath, home: PurePosixPath) -> PurePosixPath:
    seen = home / path[2:] if path == "~" or path.startswith("~/") else base / path
    seen = PurePosixPath(os.path.normpath(seen))
    inside = path.startswith("/") or seen.is_relative_to(home) or (base != home and seen.is_relative_to(base))
    if not inside or seen == PurePosixPath("/"):
        raise ExecutionError(JobReason.EXECUTOR_ERROR, f"{path} leads out of the job's folder.")
    return seen


def _below_any(path: PurePosixPath, folders: list[PurePosixPath]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)
