"""Shim processes of this machine: started detached, found alive or dead by their folders."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from perdure.agents import disk
from perdure.agents.identity import Process
from perdure.backends.places import short_path
from perdure.model.errors import ProviderError

LONGEST_INSIDE = len("/tasks/") + 36 + len("/runner.sock")
"""Bytes that agents add to an instance's folder for the path of a socket."""

START_WITHIN = 15.0
"""Seconds until a shim that was started has written down its pid."""


@dataclass(frozen=True)
class Folder:
    """One instance on this machine. As long as ``instance.json`` is there, its shim should live."""

    path: Path

    @property
    def description(self) -> Path:
        return self.path / "instance.json"

    @property
    def output(self) -> Path:
        """What the shim says before it has a log, or beside it."""
        return self.path / "shim.out"

    @property
    def leaving(self) -> Path:
        """There from the first try to terminate the instance on: nobody else starts its shim again."""
        return self.path / "terminating"

    def read(self) -> Mapping[str, str] | None:
        """What ``create`` wrote; None if there is no such instance, or no longer."""
        try:
            return json.loads(self.description.read_text())
        except (FileNotFoundError, NotADirectoryError):
            return None

    def shim(self) -> Process | None:
        """Its living shim."""
        written = disk.read(self.path / "shim.pid", Process)
        return written if written is not None and written.alive else None

    def start(self, *, leaving: bool = False) -> bool:
        """Start the shim if it is dead; whether it was. Returns when it has said who it is.

        An instance that is being terminated is left dead, but by who terminates it (``leaving``).

        Raises:
            ProviderError: it ended at once, or said nothing.
        """
        with self._alone():
            if self.shim() is not None or (self.leaving.exists() and not leaving):
                return False
            # Through a shell that ends at once: the shim's parent is then init, which reaps it.
            subprocess.run(
                [
                    *("sh", "-c", '"$@" </dev/null >"$0" 2>&1 &', str(self.output)),
                    *(sys.executable, "-m", "perdure.agents.shim", "--folder", str(self.path)),
                ],
                cwd="/",
                env={k: v for k, v in os.environ.items() if not k.startswith(("PERDURE_", "TEMPORAL_", "PG"))},
                start_new_session=True,
                check=True,
            )
            deadline = time.monotonic() + START_WITHIN
            while self.shim() is None:
                if time.monotonic() > deadline:
                    raise ProviderError(f"the agent in {self.path} does not start: {self._last_words()}")
                time.sleep(0.02)
            return True

    def stop(self) -> None:
        """Stop the shim. Its tasks would go on."""
        with self._alone():
            for number, patience in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 30.0)):
                shim = self.shim()
                deadline = time.monotonic() + patience
                while shim is not None and shim.alive and time.monotonic() < deadline:
                    shim.kill(number)
                    time.sleep(0.02)
            if self.shim() is not None:
                raise ProviderError(f"the agent in {self.path} cannot be killed")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """The worker and the stack may find the same shim dead: one of them starts it."""
        handle = os.open(self.path / "start.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def _last_words(self) -> str:
        lines = self.output.read_text(errors="replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")


def folders(home: Path) -> list[Folder]:
    """Every instance of this home."""
    instances = short_path(home, "instances", 13 + LONGEST_INSIDE)
    if not instances.exists():
        return []
    return [folder for path in sorted(instances.iterdir()) if (folder := Folder(path)).description.exists()]


def revive(home: Path) -> list[str]:
    """Start every shim that died and should live; the names of their instances."""
    started: list[str] = []
    for folder in folders(home):
        described = folder.read()
        if described is None or folder.leaving.exists() or folder.shim() is not None:
            continue
        with contextlib.suppress(FileNotFoundError):  # terminated in between
            if folder.start():
                started.append(described["name"])
    return started
