"""The one process behind ``perdure up``: starts the parts, keeps them alive, and stops them in order."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from perdure.agents.identity import Process
from perdure.backends import local_shims
from perdure.client.room import shortage
from perdure.stack import postgres, temporal
from perdure.stack.home import Home, StackError, write_atomically
from perdure.stack.part import Launch, Part, end_leftovers, last_line
from perdure.stack.settings import check_url

ROTATE_EVERY = 30.0
SHIMS_EVERY = 1.0
ROOM_EVERY = 5.0
SAY_EVERY = 15.0
"""Seconds between two lines about a part that takes its time."""


@dataclass(frozen=True)
class Options:
    """What ``perdure up`` was asked for."""

    durable: bool = False
    database_url: str | None = None
    local_fleet: bool = True


@dataclass
class Supervisor:
    home: Home
    options: Options
    say: Callable[[str], None]
    """Told every line a person should see."""

    _parts: dict[str, Part] = field(default_factory=dict)
    _began: float = field(default_factory=time.monotonic)
    _started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    _ports: dict[str, int] = field(default_factory=dict)
    _up: bool = False
    _full: str | None = None
    """That there is no room on the disk, in words."""

    _unwritten: bool = False
    """``stack.json`` could not be written when it should have been."""

    async def run(self) -> None:
        """Until told to stop (SIGINT, SIGTERM, SIGHUP). The caller holds the home's lock.

        Raises:
            StackError: a part cannot be started.
        """
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, stop.set)
        for name in await asyncio.to_thread(end_leftovers, self.home):
            self.say(f"stopped the {name} that a killed `perdure up` had left behind")
        self._make_parts()
        parts: list[asyncio.Task[Any]] = [asyncio.create_task(part.keep()) for part in self._parts.values()]
        chores: list[asyncio.Task[Any]] = [
            asyncio.create_task(c)
            for c in (self._announce(), self._keep_house(), self._keep_shims(), self._watch_room())
        ]
        work = asyncio.gather(*parts, *chores)
        stopped: asyncio.Task[Any] = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait([work, stopped], return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
        finally:
            await self._stop_parts()
            for task in (*chores, stopped):
                task.cancel()
            await asyncio.gather(*parts, *chores, work, stopped, return_exceptions=True)
            self.home.stack_file.unlink(missing_ok=True)

    def _make_parts(self) -> None:
        url = self._database_url()
        if url is None:
            server = postgres.Postgres.at(self.home)
            self._database = server.url
            self._add("postgres", "Postgres", server.launch, stop_signal=signal.SIGINT)
        else:
            self._database = url
        self._add("temporal", "Temporal", self._launch_temporal)
        self._ports = temporal.choose_ports(self.home, self.say)
        self._add("worker", "Worker", self._launch_worker, stop_within=5.0)

    def _database_url(self) -> str | None:
        """The one that was given, now or before; None: our own server."""
        given = self.options.database_url
        if given == "embedded":
            return None
        if given is not None:
            check_url(given)
            return given
        return self.home.remembered().get("database_url")

    def _add(self, name: str, title: str, launch: Callable[[], Launch], **more: Any) -> None:
        self._parts[name] = Part(
            name=name, title=title, home=self.home, launch=launch, say=self.say, changed=self._write_down, **more
        )

    def _launch_temporal(self) -> Launch:
        before = dict(self._ports)
        self._ports = temporal.choose_ports(self.home, self.say)
        if before["temporal"] != self._ports["temporal"]:
            self._parts["worker"].restart()
        return temporal.launch(self.home, synchronous=2 if self.options.durable else 1, ports=self._ports)

    def _launch_worker(self) -> Launch:
        ready_file = self.home.run / "worker.ready"
        ready_file.unlink(missing_ok=True)
        environ = {key: value for key, value in os.environ.items() if not key.startswith("TEMPORAL_")}
        environ |= {
            "PERDURE_HOME": str(self.home.path),
            "PERDURE_DATABASE_URL": self._database,
            "PERDURE_BLOBS": str(self.home.blobs),
            "PERDURE_KEY_FILE": str(self.home.key_file),
            "PERDURE_WORKER": "embedded-1",
            "PERDURE_READY_FILE": str(ready_file),
            "PERDURE_LOCAL": "1",
            "PERDURE_DURABLE": "1" if self.options.durable else "0",
            "PERDURE_LOCAL_FLEET": "1" if self.options.local_fleet and not self._up else "0",
            "TEMPORAL_ADDRESS": f"{temporal.ADDRESS}:{self._ports['temporal']}",
            "TEMPORAL_NAMESPACE": temporal.NAMESPACE,
            "TEMPORAL_CONFIG_FILE": os.devnull,
        }
        return Launch(
            command=[sys.executable, "-m", "perdure.stack.worker"],
            where="task queues perdure, perdure-io, perdure-watch",
            ready=lambda pid: ready_file.exists() and ready_file.read_text().strip() == str(pid),
            environ=environ,
        )

    async def _announce(self) -> None:
        for part in self._parts.values():
            while not part.ready.is_set():
                try:
                    await asyncio.wait_for(part.ready.wait(), SAY_EVERY)
                except TimeoutError:
                    self.say(f"still waiting for {part.title}: {last_line(part.log)}")
        self._up = True
        if "postgres" not in self._parts:
            self.home.remember(database_url=self._database)
        elif self.home.remembered().get("database_url"):
            self.home.remember(database_url=None)
        self._write_down()
        self.say(f"Perdure is up ({time.monotonic() - self._began:.1f} s). Web UI: {self._ui}")

    async def _keep_house(self) -> None:
        while True:
            await asyncio.sleep(ROTATE_EVERY)
            for part in self._parts.values():
                await asyncio.to_thread(part.rotate)

    async def _keep_shims(self) -> None:
        """A shim that died while its folder says it should live is started again, and re-adopts its tasks."""
        while True:
            for name in await asyncio.to_thread(local_shims.revive, self.home.path):
                self.say(f"the agent of instance {name} had died: started it again")
            await asyncio.sleep(SHIMS_EVERY)

    async def _watch_room(self) -> None:
        """Say when the disk is full, and when it no longer is."""
        while True:
            full = await asyncio.to_thread(shortage, self.home.path)
            if (full is None) != (self._full is None):
                self.say(full or f"there is room on the disk of {self.home.path} again")
                self._full = full
                self._write_down()
            elif self._unwritten:
                self._write_down()
            await asyncio.sleep(ROOM_EVERY)

    async def _stop_parts(self) -> None:
        """The worker first, so that it can say goodbye to both."""
        self._up = False
        if "worker" in self._parts:
            await self._parts["worker"].stop()
        await asyncio.gather(*(part.stop() for part in self._parts.values()))

    @property
    def _ui(self) -> str:
        return f"http://{temporal.ADDRESS}:{self._ports['ui']}"

    def _write_down(self) -> None:
        """``stack.json``: what clients read to find us, and ``status`` to describe us."""
        me = Process.of(os.getpid())
        pids = {name: part.process.pid for name, part in self._parts.items() if part.process is not None}
        found = {
            "version": 1,
            "temporal": f"{temporal.ADDRESS}:{self._ports['temporal']}",
            "ui": self._ui,
            "namespace": temporal.NAMESPACE,
            "database_url": self._database,
            "home": str(self.home.path),
            "pids": {"supervisor": os.getpid(), **pids},
            "started_at": self._started_at.isoformat(),
            "supervisor": me.model_dump() if me else None,
            "up": self._up,
            "full": self._full,
            "parts": [
                {
                    "name": part.name,
                    "title": part.title,
                    "where": part.where,
                    "since": part.since.isoformat() if part.since else None,
                    "state": "ready" if part.ready.is_set() else "starting" if part.process else "down",
                    "restarts": part.restarts,
                }
                for part in self._parts.values()
            ],
        }
        try:
            write_atomically(self.home.stack_file, json.dumps(found, indent=1))
        except OSError as error:  # a full disk must not take down what runs
            if not self._unwritten:
                self.say(f"{self.home.stack_file} cannot be written: {error.strerror}")
            self._unwritten = True
        else:
            self._unwritten = False


def supervise(home: Home, lock: int, options: Options, say: Callable[[str], None]) -> None:
    """Hold the stack up until told to stop. ``lock`` is from ``home.lock()``; it is given back at the end.

    Raises:
        StackError
    """
    try:
        asyncio.run(Supervisor(home, options, say).run())
    except OSError as error:
        raise StackError(f"{error.filename or home.path}: {error.strerror}") from None
    finally:
        os.close(lock)
