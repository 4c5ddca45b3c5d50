"""PERDURE_HOME: where the embedded stack keeps its state, and what must be true of it before it is used."""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.client.room import shortage
from perdure.model.errors import ControlPlaneError

STATE_VERSION = 1
"""Of the folder's layout. It is raised only with a migration from the version before."""


class StackError(ControlPlaneError):
    """The embedded stack cannot do what was asked; said in one sentence."""

    code = "stack"
    retryable = False


@dataclass(frozen=True)
class Home:
    """The folder and what is in it."""

    path: Path

    @classmethod
    def find(cls, environ: Mapping[str, str] = os.environ) -> Home:
        """``PERDURE_HOME``, or ``~/.perdure``."""
        named = environ.get("PERDURE_HOME")
        if named:
            return cls(Path(named).expanduser().absolute())
        try:
            return cls(Path.home() / ".perdure")
        except RuntimeError:
            raise StackError(
                "there is no folder to keep state in: HOME is not set", hint="set PERDURE_HOME to a folder of yours"
            ) from None

    @property
    def stack_file(self) -> Path:
        return self.path / "stack.json"

    @property
    def state_file(self) -> Path:
        return self.path / "state.json"

    @property
    def key_file(self) -> Path:
        return self.path / "key"

    @property
    def blobs(self) -> Path:
        return self.path / "blobs"

    @property
    def temporal(self) -> Path:
        return self.path / "temporal"

    @property
    def run(self) -> Path:
        """What is true only while processes live: their pids, and whether they are ready."""
        return self.path / "run"

    def log(self, part: str) -> Path:
        return self.path / "logs" / f"{part}.log"

    def prepare(self) -> None:
        """Make the folder fit for use, or say in one sentence why it is not.

        Raises:
            StackError
        """
        with _said_of(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
            for folder in (self.temporal, self.run, self.path / "logs", self.blobs, self.path / "instances"):
                folder.mkdir(exist_ok=True)
            self.path.chmod(0o700)
            with tempfile.TemporaryFile(dir=self.path) as probe:
                probe.write(b"\0" * 4096)
        if (full := shortage(self.path)) is not None:
            raise StackError(full, hint="make room, then start again")
        self._check_version()

    def _check_version(self) -> None:
        version = self.remembered().get("version")
        if version is None:
            self.remember(version=STATE_VERSION)
        elif version > STATE_VERSION:
            raise StackError(
                f"{self.path} was written by a newer Perdure (state version {version}, not {STATE_VERSION})",
                hint="install that version, or set PERDURE_HOME to another folder",
            )
        elif version < STATE_VERSION:
            raise StackError(
                f"{self.path} was written by an older Perdure (state version {version}) that this one cannot read",
                hint="start it with that version, or set PERDURE_HOME to another folder",
            )

    def remembered(self) -> dict[str, Any]:
        """What outlives the processes: the version of the folder, the ports, the database."""
        try:
            found = json.loads(self.state_file.read_text())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise StackError(f"{self.state_file} cannot be read: {error}") from None
        if not isinstance(found, dict) or not isinstance(found.get("version"), int):
            raise StackError(
                f"{self.state_file} is not what Perdure wrote", hint="remove it if the folder is yours"
            )
        return found

    def remember(self, **values: object) -> None:
        with _said_of(self.path):
            write_atomically(self.state_file, json.dumps({**self.remembered(), **values}, indent=1))

    def running(self) -> dict[str, Any] | None:
        """What ``stack.json`` says, whether or not it is still so."""
        try:
            found = json.loads(self.stack_file.read_text())
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def lock(self, patience: float = 0.5) -> int | None:
        """Take the lock that the one supervisor holds as long as it lives; None if another has it.

        Who only looks (``locked``) has it for an instant, which ``patience`` (seconds) is for.
        """
        with _said_of(self.path):
            handle = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    os.close(handle)
                    return None
            else:
                return handle
            time.sleep(0.02)

    def locked(self) -> bool:
        """Whether a supervisor lives."""
        if not (self.path / "lock").exists():
            return False
        handle = self.lock(patience=0)
        if handle is None:
            return True
        os.close(handle)
        return False


def write_atomically(path: Path, text: str, mode: int = 0o600) -> None:
    """Readers see the old text or the new one, whatever happens in between."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w") as file:
            os.fchmod(file.fileno(), mode)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@contextmanager
def _said_of(path: Path) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        raise StackError(
            f"no permission to write {error.filename or path}", hint="set PERDURE_HOME to a folder of yours"
        ) from None
    except OSError as error:
        raise StackError(
            f"{error.filename or path} cannot be written: {error.strerror}",
            hint="set PERDURE_HOME to a folder that can",
        ) from None
