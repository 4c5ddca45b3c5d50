"""Starts runners in a few milliseconds: a process that has imported what a runner needs, and forks.

The shim keeps one, talks to it over a socket, and starts another if it dies; without the shim it ends. A runner is
forked twice, so that it belongs to nobody, in a session of its own: it outlives both.

One request is a line ``FOLDER`` with the write end of a pipe. The runner writes a byte there once it takes calls;
the pipe's end without one means that it could not.
"""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import subprocess
import sys
import traceback
from pathlib import Path

_START_WITHIN = 30.0
"""Seconds for a runner to take calls."""

_LAST_LINES, _LAST_CHARACTERS = 5, 1000


class RunnerNotStarted(OSError):
    """The runner died before it took calls; with the last words of its log."""


class Zygote:
    """The shim's end."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    async def start_runner(self, folder: Path) -> None:
        """Start the runner of the task in ``folder``; returns when it takes calls.

        Raises:
            RunnerNotStarted
        """
        log = folder / "runner.log"
        before = log.stat().st_size if log.exists() else 0
        late = ""
        ended, ready = os.pipe()
        try:
            self._ask(folder, ready)
        finally:
            os.close(ready)
        try:
            word = await asyncio.wait_for(_read(ended), _START_WITHIN)
        except TimeoutError:
            word = b""
            late = f" within {_START_WITHIN:.0f} s"
        finally:
            os.close(ended)
        if not word:
            said = _last_words(log, before) or ("nothing in its log" if late else "it was killed")
            raise RunnerNotStarted(f"The runner did not start{late}: {said}")

    def warm(self) -> None:
        """Have the process ready."""
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "perdure.agents.shim.zygote", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )

    def close(self) -> None:
        """Let it end."""
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
            self._process.wait()
        self._socket = self._process = None

    def _ask(self, folder: Path, ready: int) -> None:
        for last_try in (False, True):
            self.warm()
            assert self._socket is not None
            try:
                socket.send_fds(self._socket, [os.fsencode(folder) + b"\n"], [ready])
                return
            except OSError as error:
                self.close()
                if last_try:
                    raise RunnerNotStarted(f"No runner could be started: {error}.") from error


def _last_words(log: Path, since: int) -> str:
    """The last lines of what was written after byte ``since``."""
    if not log.exists():
        return ""
    lines = log.read_bytes()[since:].decode(errors="replace").strip().splitlines()
    return "\n".join(lines[-_LAST_LINES:])[-_LAST_CHARACTERS:]


async def _read(fd: int) -> bytes:
    loop = asyncio.get_running_loop()
    readable = loop.create_future()
    loop.add_reader(fd, lambda: readable.done() or readable.set_result(None))
    try:
        await readable
    finally:
        loop.remove_reader(fd)
    return os.read(fd, 1)


def main() -> None:
    """The zygote's end: fork a runner a request, until the shim is gone."""
    from perdure.agents.process import sandbox
    from perdure.agents.runner import process  # noqa: F401  (imported before any fork: that is the point)

    sandbox.probe()
    channel = socket.socket(fileno=int(sys.argv[1]))
    gc.freeze()
    while True:
        line, fds, _, _ = socket.recv_fds(channel, 8192, 1)
        if not line:
            return
        ready = fds[0]
        child = os.fork()
        if child == 0:
            os.setsid()
            if os.fork() == 0:
                channel.close()
                _become_runner(Path(os.fsdecode(line[:-1])), ready)
            os._exit(0)
        os.waitpid(child, 0)
        os.close(ready)


def _become_runner(folder: Path, ready: int) -> None:
    from perdure.agents.runner.process import serve

    log = os.open(folder / "runner.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for fd in (1, 2):
        os.dup2(log, fd)
    os.close(log)
    code = 1

    def tell() -> None:
        os.write(ready, b"1")
        os.close(ready)

    try:
        serve(folder, tell)
        code = 0
    except BaseException:  # noqa: BLE001  the process ends here, whatever it was
        traceback.print_exc()
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
