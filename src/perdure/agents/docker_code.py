"""Puts code and files into a container that has not been started, as packed: names, bytes, exec bits, symlinks.

The engine unpacks, inside the container's root, so that no link of an image or an archive leads out of it. What we
rewrite is the owner: files belong to the user the job runs as.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import tarfile
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from perdure.agents.docker_engine import SLOW_TIMEOUT, Engine, EngineError
from perdure.agents.execution import ExecutionError
from perdure.agents.protocol import Archive, SubmitBody
from perdure.model.statuses import JobReason

CHUNK = 1 << 20
SPOOL = 16 << 20
"""Bytes of a rewritten archive kept in memory; more goes to a temporary file."""


class ContainerFiles:
    """The files of one container, through the engine."""

    def __init__(self, engine: Engine, container_id: str):
        self._engine = engine
        self._path = f"/containers/{container_id}/archive"

    async def put_code(self, job: SubmitBody, archives: Path, working_dir: str, user: str) -> None:
        """Unpack every archive of the job; they lie in ``archives``, named by their hash. The working directory is
        the user's own, if there is nothing in it yet: the engine makes it as root's.

        Raises:
            ExecutionError
        """
        owner = await self.owner(user)
        if owner.uid:
            await self._give(PurePosixPath(working_dir), owner)
        for archive in job.archives:
            target = await self._target(archive, working_dir, owner)
            if archive.kind == "repo" and not await self._is_empty(target):
                if job.repo_exists_action == "skip":
                    continue
                raise _refused(f"{target} is not empty in the image: the repo would overwrite what is there.")
            await self._make(target, owner)
            await self._put(archives / archive.sha256, target, owner)

    async def exists(self, path: PurePosixPath) -> bool:
        return await self._mode(path) is not None

    async def read_text(self, path: str) -> str:
        """A small file's text; empty when there is none."""
        try:
            async with self._engine.stream("GET", self._path, params={"path": path}) as chunks:
                content = b"".join([chunk async for chunk in chunks])
        except EngineError as error:
            if error.status == 404:
                return ""
            raise
        with tarfile.open(fileobj=io.BytesIO(content)) as tar:
            for member in tar:
                if file := tar.extractfile(member):
                    return file.read().decode(errors="replace")
        return ""

    async def owner(self, user: str) -> Owner:
        """Whose the files of a container user (``name``, ``uid``, ``name:group``, ``uid:gid``) are."""
        name, _, group = user.partition(":")
        passwd = [line.split(":") for line in (await self.read_text("/etc/passwd")).splitlines()]
        name = name or "0"
        uid, gid, home = (int(name), 0, "/") if name.isdecimal() else (0, 0, "/root")
        for entry in passwd:
            if len(entry) >= 6 and name in (entry[0], entry[2]):
                uid, gid, home = int(entry[2]), int(entry[3]), entry[5] or "/"
                break
        if group.isdecimal():
            gid = int(group)
        elif group:
            for line in (await self.read_text("/etc/group")).splitlines():
                entry = line.split(":")
                if len(entry) >= 3 and entry[0] == group:
                    gid = int(entry[2])
        return Owner(uid, gid, home)

    async def _target(self, archive: Archive, working_dir: str, owner: Owner) -> PurePosixPath:
        path = archive.path
        if path == "~" or path.startswith("~/"):
            path = str(PurePosixPath(owner.home, path[2:]))
        return PurePosixPath("/", working_dir, path)

    async def _mode(self, path: PurePosixPath) -> int | None:
        headers = await self._engine.head(self._path, params={"path": str(path)})
        if headers is None:
            return None
        return int(json.loads(base64.b64decode(headers["X-Docker-Container-Path-Stat"]))["mode"])

    async def _is_empty(self, path: PurePosixPath) -> bool:
        """Whether a folder is empty or missing: its listing has no second entry."""
        head = b""
        try:
            async with self._engine.stream("GET", self._path, params={"path": f"{path}/."}) as chunks:
                async for chunk in chunks:
                    head += chunk
                    if len(head) >= 64 * 1024:
                        break
        except EngineError as error:
            if error.status == 404:
                return True
            raise
        return len(list(_names(head))) < 2

    async def _give(self, folder: PurePosixPath, owner: Owner) -> None:
        mode = await self._mode(folder)
        if folder == folder.parent or mode is None or mode & 0o002 or not await self._is_empty(folder):
            return
        entry = _folder_entry(folder.name, owner, mode & 0o777)
        await self._upload(folder.parent, _tar([entry]))

    async def _make(self, target: PurePosixPath, owner: Owner) -> None:
        """Make the folders of a path that are missing; those there keep their modes and owners."""
        missing: list[PurePosixPath] = []
        folder = target
        while folder != folder.parent and await self._mode(folder) is None:
            missing.append(folder)
            folder = folder.parent
        if not missing:
            return
        entries = [_folder_entry(str(path.relative_to(folder)), owner, 0o755) for path in reversed(missing)]
        await self._upload(folder, _tar(entries))

    async def _put(self, archive: Path, target: PurePosixPath, owner: Owner) -> None:
        with tempfile.SpooledTemporaryFile(max_size=SPOOL, dir=str(archive.parent)) as rewritten:
            try:
                await asyncio.to_thread(_own, archive, rewritten, owner)
            except tarfile.TarError as error:
                raise _refused(f"It is not a readable tar archive: {error}.") from error
            rewritten.seek(0)
            await self._upload(target, rewritten)

    async def _upload(self, folder: PurePosixPath, content: IO[bytes]) -> None:
        try:
            await self._engine.call(
                "PUT",
                self._path,
                params={"path": str(folder)},
                content=_chunks(content),
                timeout=SLOW_TIMEOUT,
            )
        except EngineError as error:
            raise _refused(f"Code cannot be put at {folder}: {error.message}") from error


class Owner:
    """Numeric owner of files, and the user's home."""

    def __init__(self, uid: int, gid: int, home: str):
        self.uid = uid
        self.gid = gid
        self.home = home


def _folder_entry(name: str, owner: Owner, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = tarfile.DIRTYPE, mode
    entry.uid, entry.gid = owner.uid, owner.gid
    return entry


def _tar(entries: list[tarfile.TarInfo]) -> io.BytesIO:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for entry in entries:
            tar.addfile(entry)
    buffer.seek(0)
    return buffer


def _own(archive: Path, out: IO[bytes], owner: Owner) -> None:
    """The same archive with another owner; set-id bits and device files are not taken over."""
    with (
        tarfile.open(archive, "r:*") as source,
        tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as target,
    ):
        for member in source:
            if not (member.isreg() or member.isdir() or member.issym() or member.islnk()):
                raise _refused(f"{member.name!r} is a device or a pipe.")
            member.uid, member.gid, member.uname, member.gname = owner.uid, owner.gid, "", ""
            member.mode &= 0o777
            target.addfile(member, source.extractfile(member) if member.isreg() else None)


def _names(head: bytes) -> Iterator[str]:
    """The members whose headers lie in the first bytes of a tar."""
    try:
        with tarfile.open(fileobj=io.BytesIO(head), mode="r|") as tar:
            for member in tar:
                yield member.name
    except tarfile.ReadError:
        return


async def _chunks(content: IO[bytes]) -> AsyncIterator[bytes]:
    while chunk := await asyncio.to_thread(content.read, CHUNK):
        yield chunk


def _refused(message: str) -> ExecutionError:
    return ExecutionError(JobReason.EXECUTOR_ERROR.value, message)
