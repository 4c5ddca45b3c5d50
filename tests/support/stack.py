"""A whole embedded stack in a folder of its own: started by the real program, and gone without a trace."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from perdure.backends.places import outside
from tests.support.waiting import WITHIN, until


class Stack:
    """``perdure`` on one PERDURE_HOME. Nothing of the caller's settings leaks in."""

    def __init__(
        self,
        home: Path,
        *,
        program: Sequence[str] = (sys.executable, "-c", "from perdure.cli import main; main()"),
        uid: int | None = None,
        environ: Mapping[str, str] | None = None,
    ):
        self.home = home
        self.program = tuple(program)
        self.uid = uid
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PERDURE_", "TEMPORAL_"))}
        self.environ = {**inherited, "PERDURE_HOME": str(home), "COLUMNS": "200", **(environ or {})}

    def run(self, *arguments: str, within: float = WITHIN, **environ: str) -> subprocess.CompletedProcess[str]:
        """One command to its end, whatever its exit status."""
        return subprocess.run(
            [*self.program, *arguments],
            env=self.environ | environ,
            cwd="/",
            user=self.uid,
            group=self.uid,
            extra_groups=None if self.uid is None else [],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=within,
            check=False,
        )

    def ok(self, *arguments: str, within: float = WITHIN) -> str:
        """One command that must succeed; what it printed."""
        done = self.run(*arguments, within=within)
        assert done.returncode == 0, f"perdure {' '.join(arguments)}\n{done.stdout}\n{done.stderr}\n{self.logs()}"
        return done.stdout

    def refused(self, *arguments: str) -> str:
        """One command that must fail with status 1, in a sentence; the sentence."""
        done = self.run(*arguments)
        assert done.returncode == 1, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return " ".join(done.stderr.split())

    def up(self, *options: str) -> str:
        return self.ok("up", "--detach", *options)

    @property
    def described(self) -> dict[str, Any]:
        return json.loads((self.home / "stack.json").read_text())

    def pid(self, part: str) -> int:
        return self.described["pids"][part]

    def kill(self, part: str) -> int:
        """kill -9; the pid that was."""
        pid = self.pid(part)
        os.kill(pid, signal.SIGKILL)
        return pid

    def is_up(self) -> bool:
        with contextlib.suppress(FileNotFoundError, json.JSONDecodeError):
            found = self.described
            return found["up"] and all(part["state"] == "ready" for part in found["parts"])
        return False

    def wait_until_up_again(self, part: str, was: int) -> None:
        """Until the part runs as another process, and everything is ready."""
        self.until(lambda: self.described["pids"].get(part, was) != was and self.is_up(), f"{part} again")

    def until(self, true: Callable[[], object], what: str) -> None:
        """Wait for something; a failure shows the ends of all logs."""
        until(true, what, also=self.logs)

    def logs(self) -> str:
        """The ends of all log files, for a failure's message."""
        texts: list[str] = []
        for path in sorted((self.home / "logs").glob("*.log")):
            texts.append(f"--- {path.name}\n" + "\n".join(path.read_text(errors="replace").splitlines()[-15:]))
        return "\n".join(texts)

    def processes(self) -> list[psutil.Process]:
        """All that live on account of this home."""
        places = [str(self.home), *map(str, outside(self.home))]
        found: list[psutil.Process] = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                words = " ".join([*process.cmdline(), process.environ().get("PERDURE_HOME", "")])
                if process.status() != psutil.STATUS_ZOMBIE and any(place in words for place in places):
                    found.append(process)
        return found

    def agents(self, word: str) -> list[psutil.Process]:
        """Its shims, runners or keepers."""
        found: list[psutil.Process] = []
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                if word in " ".join(process.cmdline()):
                    found.append(process)
        return found

    def kill_agents(self, word: str) -> None:
        """kill -9 of all of them."""
        for process in self.agents(word):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def wipe(self) -> None:
        """``down --all --delete-state``, and the proof that it leaves nothing."""
        if self.home.exists():
            self.ok("down", "--all", "--delete-state")
        assert not self.home.exists(), sorted(self.home.iterdir())
        for path in outside(self.home):
            assert not path.exists(), sorted(path.iterdir())
        until(lambda: not self.processes(), "no process to be left")


@contextlib.contextmanager
def fresh(**options: Any) -> Iterator[Stack]:
    """A stack that has not been started. At the end nothing of it is left, which is checked."""
    parent = Path(tempfile.mkdtemp(prefix="pd-"))
    stack = Stack(parent / "h", **options)
    if stack.uid is not None:
        os.chown(parent, stack.uid, stack.uid)
    try:
        yield stack
    except BaseException:
        _make_away(stack)
        raise
    else:
        stack.wipe()
    finally:
        shutil.rmtree(parent, ignore_errors=True)


def _make_away(stack: Stack) -> None:
    """After a failure: whatever it takes, so that the next test finds a clean machine."""
    with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
        stack.wipe()
    for process in stack.processes():
        with contextlib.suppress(psutil.Error):
            process.kill()
    for path in outside(stack.home):
        shutil.rmtree(path, ignore_errors=True)
