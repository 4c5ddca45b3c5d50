"""One part of the stack: a child process that is kept alive, with one log file of bounded size."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from perdure.agents.identity import Process
from perdure.model.errors import ControlPlaneError
from perdure.stack.home import Home, StackError
from perdure.stack.processes import end, written_in

LOG_LIMIT = 16 * 1024**2
"""Bytes of one log file; what was before is kept once, as ``NAME.log.1``."""

LONGEST_PAUSE = 10.0
"""Seconds between two starts of a part that keeps ending."""

HEALTHY_AFTER = 10.0
"""A part that lived this long starts again at once when it ends."""

LOOK_EVERY = 1.0
"""Seconds between two looks at whether a part is leaving."""

FIRST_TRIES = 3
"""A part that never was ready is started again so many times; then there is something to mend."""

CANNOT_START = 78
"""Exit status of a part that would only fail again (EX_CONFIG of sysexits.h)."""


@dataclass(frozen=True)
class Launch:
    """How a part is started, decided anew at each start."""

    command: Sequence[str]
    where: str
    """As shown to people: an address, a path."""

    ready: Callable[[int], bool]
    """Given the child's pid, whether it is it that answers. Never blocks."""

    leaving: Callable[[int], bool] | None = None
    """Given its pid, whether it is on its way out by its own word, and may take for ever. Never blocks."""

    environ: Mapping[str, str] | None = None
    uid: int | None = None


@dataclass
class Part:
    """Started, watched, started again when it ends, and stopped."""

    name: str
    title: str
    home: Home
    launch: Callable[[], Launch]
    say: Callable[[str], None]
    changed: Callable[[], None]
    """Called when anything shown about the part has changed."""

    stop_signal: int = signal.SIGTERM
    stop_within: float = 10.0
    start_within: float = 60.0
    where: str = ""
    since: datetime | None = None
    process: Process | None = None
    restarts: int = 0
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    _child: asyncio.subprocess.Process | None = None
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _again: bool = False
    _said: str = ""
    _once: bool = False
    """It has been ready before."""

    @property
    def log(self) -> Path:
        return self.home.log(self.name)

    @property
    def pid_file(self) -> Path:
        return self.home.run / f"{self.name}.pid"

    async def keep(self) -> None:
        """Run the part until ``stop``.

        Raises:
            StackError: it cannot be started, and would not be the next time.
        """
        pause = 0.1
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                launch = await asyncio.to_thread(self.launch)
                if self._stopping.is_set():
                    return
                self._child = await self._spawn(launch)
            except (OSError, ControlPlaneError) as error:
                await self._failed(_in_words(self.title, error))
                continue
            self.where, self.since = launch.where, datetime.now(UTC)
            if self._stopping.is_set():  # told so while it was being started
                self._signal(self.stop_signal)
            watches = [
                asyncio.create_task(watch(launch, self._child.pid)) for watch in (self._until_ready, self._hurry)
            ]
            status = await self._child.wait()
            for watch in watches:
                watch.cancel()
            self.ready.clear()
            self.process = None
            self.changed()
            if self._stopping.is_set():
                return
            if status == CANNOT_START:
                await self._failed(StackError(last_line(self.log), hint=f"see {self.log}"))
                continue
            if not self._once and self.restarts >= FIRST_TRIES and not self._again:
                raise StackError(f"{self.title} does not start: {last_line(self.log)}", hint=f"see {self.log}")
            if time.monotonic() - began > HEALTHY_AFTER or self._again:
                pause = 0.1
            if not self._again:
                self.say(f"{self.title} {_how(status)}; starting it again (log: {self.log})")
            self._again = False
            self.restarts += 1
            await self._pause(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _failed(self, error: StackError) -> None:
        """At first, a part that cannot be started ends the whole; one that has run is waited for: a full disk, or
        a database that somebody upgrades, must not take the others down."""
        if not self._once:
            raise error
        if error.message != self._said:
            self.say(f"{self.title} cannot be started: {error.message}")
        self._said = error.message
        await self._pause(LONGEST_PAUSE)

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)

    def restart(self) -> None:
        """End it; ``keep`` starts it again with what ``launch`` then says."""
        self._again = True
        self._signal(self.stop_signal)

    async def stop(self) -> None:
        """Have it stopped, gently, then for certain; ``keep`` then returns."""
        self._stopping.set()
        child = self._child
        if child is None or child.returncode is not None:
            return
        self._signal(self.stop_signal)
        try:
            await asyncio.wait_for(child.wait(), self.stop_within)
        except TimeoutError:
            self.say(f"{self.title} did not stop within {self.stop_within:.0f} s: killed")
            self._signal(signal.SIGKILL)
            await child.wait()

    def _signal(self, number: int) -> None:
        if self._child is not None and self._child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._child.send_signal(number)

    async def _spawn(self, launch: Launch) -> asyncio.subprocess.Process:
        output = os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        pid_file = os.open(self.pid_file, os.O_WRONLY | os.O_TRUNC | os.O_CREAT | os.O_CLOEXEC, 0o600)

        def write_itself_down() -> None:
            # In the child, before it becomes the part: so that no kill of ours can leave one nobody knows of.
            me = Process.of(os.getpid())
            os.write(pid_file, me.model_dump_json().encode() if me else b"")

        try:
            return await asyncio.create_subprocess_exec(
                *launch.command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=launch.environ,
                cwd="/",
                start_new_session=True,
                preexec_fn=write_itself_down,
                user=launch.uid,
                group=launch.uid,
                extra_groups=None if launch.uid is None else [],
            )
        except OSError as error:
            raise StackError(f"{self.title} cannot be started: {error.strerror}: {launch.command[0]}") from None
        finally:
            os.close(output)
            os.close(pid_file)

    async def _until_ready(self, launch: Launch, pid: int) -> None:
        self.process = Process.of(pid)
        self.changed()
        while not await asyncio.to_thread(launch.ready, pid):  # noqa: ASYNC110 (nothing of ours says so)
            await asyncio.sleep(0.02)
        self._once = True
        self.ready.set()
        self.changed()

    async def _hurry(self, launch: Launch, pid: int) -> None:
        """Somebody else has told it to end, and it does not start again before it has."""
        if launch.leaving is None:
            return
        while not await asyncio.to_thread(launch.leaving, pid):  # noqa: ASYNC110 (nothing of ours says so)
            await asyncio.sleep(LOOK_EVERY)
        self.ready.clear()
        self.changed()
        self._signal(self.stop_signal)

    def rotate(self) -> None:
        """Keep the log within its limit. The part appends, so that its file may be cut under it."""
        if self.log.exists() and self.log.stat().st_size > LOG_LIMIT:
            before = self.log.with_suffix(".log.1")
            before.write_bytes(self.log.read_bytes())
            os.truncate(self.log, 0)


def end_leftovers(home: Home) -> list[str]:
    """Stop, in order, what a supervisor that was killed left at work; the names of those parts."""
    left: list[str] = []
    for name, gently in (("worker", signal.SIGTERM), ("temporal", signal.SIGTERM), ("postgres", signal.SIGINT)):
        process = written_in(home.run / f"{name}.pid")
        if process is not None:
            end(process, gently)
            left.append(name)
    return left


def last_line(log: Path) -> str:
    """The last thing a part said."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 8192))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _in_words(title: str, error: OSError | ControlPlaneError) -> StackError:
    if isinstance(error, StackError):
        return error
    if isinstance(error, ControlPlaneError):
        return StackError(error.message, hint=error.hint)
    where = f" ({error.filename})" if error.filename else ""
    return StackError(f"{title} cannot be started: {error.strerror}{where}")


def _how(status: int) -> str:
    if status < 0:
        return f"was killed ({signal.Signals(-status).name})"
    return f"ended with status {status}"
