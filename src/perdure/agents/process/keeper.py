"""The keeper: parent of what the user runs, so that its output and exit status survive runner and shim.

Started as a file, ``python -S -E -I keeper.py SPEC LOCK_FD``, with the standard library alone (10 ms, 8 MB).
It holds the lock it inherits for as long as it lives. It writes, in the task's folder:

``keeper.json``  who it is, before the user's process is started: from then on nobody starts it a second time
``log``          what the job wrote, byte for byte
``exit.json``    how the job ended, when every process of it is gone and all output is in the log

Output comes through a pipe and not straight into the file: a job that writes to ``/dev/stderr`` by that name opens
it anew, and would truncate the file. As subreaper the keeper inherits double forks; in a pid namespace (bubblewrap)
the kernel ends everything with the first process. Background processes end with the main one, as in a container.
"""

import contextlib
import errno
import fcntl
import io
import marshal
import os
import selectors
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(__file__))  # noqa: PTH120  it is a program of its own, and these its neighbours
import descent  # pyright: ignore[reportMissingImports]
import launch  # pyright: ignore[reportMissingImports]

_CHUNK = 1 << 20
_SPACE = 2048
"""Bytes kept for ``exit.json`` from the start, so that a full disk cannot lose the result."""

RESERVE = 64 << 20
"""Bytes of the disk left to everybody else: below it, no output is taken from a job that runs. The control plane
may live on the same disk, and one job's output must not take it down."""

_F_SETPIPE_SZ = 1031
_PR_SET_CHILD_SUBREAPER = 36


def keep(spec_path: str, lock: int) -> None:
    """Run the job that ``spec_path`` describes, to its end. The lock is this process's alone."""
    os.set_inheritable(lock, False)
    with open(spec_path, "rb") as file:  # noqa: PTH123
        spec = marshal.load(file)
    os.chdir(spec["folder"])
    for signum in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(signum, signal.SIG_IGN)
    _become_subreaper()
    with open("exit.next", "wb") as reserve:  # noqa: PTH123
        reserve.write(b" " * _SPACE)
    log = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    _write_self(spec["boot"])
    try:
        exit_record = _Run(spec, log).until_over()
    except OSError as error:
        exit_record = {"status": 255, "failed": True, "message": f"The process could not be started: {error}"}
    os.close(log)
    _write_exit(exit_record)


class _Run:
    """One run of the user's command."""

    def __init__(self, spec: dict, log: int):
        self.spec = spec
        self.log = log
        self.lost = 0
        self.buffer = memoryview(bytearray(_CHUNK))
        self.child_ended, wake = os.pipe()
        os.set_blocking(self.child_ended, False)
        os.set_blocking(wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self.output, output = os.pipe()
        self.status, status = os.pipe()
        with contextlib.suppress(OSError):
            fcntl.fcntl(self.output, _F_SETPIPE_SZ, _CHUNK)
        if spec["uid"] is not None:
            os.fchown(output, spec["uid"], spec["gid"])
        os.set_blocking(self.output, False)
        os.set_blocking(self.status, False)
        self.reader = io.FileIO(self.output, closefd=False)
        self.main = _start(spec, output, status)
        os.close(output)
        os.close(status)

    def until_over(self) -> dict:
        """Copy the output until the main process has ended; then end the rest, and say how it was."""
        status = None
        with selectors.DefaultSelector() as selector:
            selector.register(self.output, selectors.EVENT_READ)
            selector.register(self.child_ended, selectors.EVENT_READ)
            while status is None:
                for key, _ in selector.select():
                    if key.fd == self.output and self._copy(patience=None) == 0:
                        selector.unregister(self.output)
                    elif key.fd == self.child_ended:
                        with contextlib.suppress(BlockingIOError):
                            os.read(self.child_ended, 4096)
                        status = self._reap()
        self._end_the_rest()
        while self._copy(patience=5.0):
            pass
        return self._record(status)

    def _reap(self) -> int | None:
        """Bury the dead; the status of the main process if it is among them."""
        found = None
        with contextlib.suppress(ChildProcessError):
            while (dead := os.waitpid(-1, os.WNOHANG))[0]:
                if dead[0] == self.main:
                    found = dead[1]
        return found

    def _end_the_rest(self) -> None:
        pause = 0.0005
        while True:
            for pid in descent.descendants(os.getpid()):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                return
            time.sleep(pause)
            pause = min(pause * 2, 0.05)

    def _copy(self, patience: float | None) -> int | None:
        """Move what is in the pipe to the log; 0 at its end, None if it is empty for now.

        A disk that is full but for ``RESERVE`` makes the job wait for room. Once it has ended, what is left in the
        pipe may have of the reserve, and is waited with for at most ``patience`` seconds.
        """
        count = self.reader.readinto(self.buffer)
        written = 0
        deadline = time.monotonic() + (patience or 0)
        while count and written < count:
            try:
                if patience is None and _free(self.log) < RESERVE:
                    raise OSError(errno.ENOSPC, "What is left of the disk is in reserve")
                written += os.write(self.log, self.buffer[written:count])
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                if patience is not None and time.monotonic() > deadline:
                    self.lost += count - written
                    break
                if patience is None and self._main_is_over():
                    patience, deadline = 5.0, time.monotonic() + 5.0
                time.sleep(0.2)
        return count

    def _main_is_over(self) -> bool:
        return os.waitid(os.P_PID, self.main, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _record(self, status: int | None) -> dict:
        word = b""
        with contextlib.suppress(BlockingIOError):
            word = os.read(self.status, 4096)
        code = os.waitstatus_to_exitcode(status or 0)
        code = 128 - code if code < 0 else code
        record = {"status": code, "failed": False, "message": "", "lost": self.lost}
        if word.startswith(b"SE"):
            record["message"] = word[2:].decode(errors="replace")
        elif not word and code < 128:
            record |= {"failed": True, "message": "The sandbox could not be made; its log says why."}
        return record


def _start(spec: dict, output: int, status: int) -> int:
    """Start the user's process, through the sandbox if there is one; its pid."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        for fd in (1, 2):
            os.dup2(output, fd)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        if spec["sandbox"]:
            spec_fd = os.open(spec["path"], os.O_RDONLY)
            for fd in (spec_fd, status):
                os.set_inheritable(fd, True)
            inner = [spec["python"], "-S", "-E", "-I", launch.__file__, str(spec_fd), str(status)]
            launch.default_signals()
            os.execve(spec["sandbox"][0], [*spec["sandbox"], "--", *inner], {})
        launch.launch(spec, status)
    finally:
        os._exit(126)


def _free(file: int) -> int:
    """Bytes that are free where this open file is."""
    disk = os.fstatvfs(file)
    return disk.f_bavail * disk.f_frsize


def _become_subreaper() -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _start_of_self() -> float:
    with open("/proc/self/stat", "rb") as file:  # noqa: PTH123
        stat = file.read()
    return float(stat[stat.rindex(b")") + 2 :].split()[19])


def _write_self(boot: str) -> None:
    with open(".keeper.json", "w") as file:  # noqa: PTH123
        file.write(f'{{"pid": {os.getpid()}, "started": {_start_of_self()}, "boot": "{boot}"}}')
    os.replace(".keeper.json", "keeper.json")  # noqa: PTH105


def _write_exit(record: dict) -> None:
    """In the place kept for it, durably."""
    import json  # costs more than all the rest, and a job need not wait for it to start

    with open("exit.next", "r+b") as file:  # noqa: PTH123
        text = json.dumps(record).encode()
        file.write(text + b" " * (_SPACE - len(text)))
        file.flush()
        os.fsync(file.fileno())
    os.replace("exit.next", "exit.json")  # noqa: PTH105


if __name__ == "__main__":
    keep(sys.argv[1], int(sys.argv[2]))
