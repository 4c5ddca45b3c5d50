"""A real shim in a folder of its own, with real runners and jobs, and a look at what is left of them."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx

from perdure.agents.client import Agents, RunnerClient, ShimClient
from perdure.agents.identity import Process
from perdure.agents.protocol import JobState, RunnerState, SubmitBody, TaskConfig, TaskInfo, TaskStatus
from perdure.model.errors import AgentUnreachable
from tests.support.waiting import WITHIN


@dataclass(frozen=True)
class Address:
    instance_id: UUID
    socket: str
    token: str


async def eventually(what: Callable[[], Any]) -> Any:
    """The first true answer of ``what``, which may be awaitable."""
    deadline = time.monotonic() + WITHIN
    while True:
        answer = what()
        if isinstance(answer, Awaitable):
            answer = await answer
        if answer:
            return answer
        assert time.monotonic() < deadline, f"not within {WITHIN:.0f} s"
        await asyncio.sleep(0.01)


class Host:
    """One instance: its shim's folder, and what a test does to it."""

    def __init__(self, base: Path):
        self.base = base
        self.folder = base / "home" / "i"
        self.work = base / "work"
        self.folder.mkdir(parents=True)
        self.work.mkdir()
        self.endpoint = Address(uuid4(), str(self.folder / "shim.sock"), "the-token")
        self.agents = Agents()
        self.process: subprocess.Popen[bytes] | None = None
        self.environment: dict[str, str] = {}
        """What its shim gets beside our own."""

        (self.folder / "instance.json").write_text(
            json.dumps(
                {
                    "instance_id": str(self.endpoint.instance_id),
                    "token": self.endpoint.token,
                    "address": "127.0.0.1",
                    "name": "here",
                    "installation": str(uuid4()),
                    "epoch": 1,
                    "work_dir": str(self.work),
                    "home": str(base / "home"),
                }
            )
        )

    def start_shim(self) -> None:
        """Start it, as the backend does."""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "perdure.agents.shim", "--folder", str(self.folder)],
            env={**os.environ, **self.environment},
            start_new_session=True,
        )

    async def shim(self) -> ShimClient:
        """The shim, once it answers."""
        client = await self.agents.shim(self.endpoint)

        async def answers() -> bool:
            try:
                await client.healthcheck()
            except AgentUnreachable:
                return False
            return True

        await eventually(answers)
        return client

    def kill_shim(self) -> None:
        """kill -9."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def task_folder(self, task_id: UUID) -> Path:
        return self.folder / "tasks" / str(task_id)

    def runner_process(self, task_id: UUID) -> Process:
        return Process.model_validate_json((self.task_folder(task_id) / "runner.json").read_text())

    def kill_runner(self, task_id: UUID) -> None:
        """kill -9."""
        self.runner_process(task_id).kill()

    def keeper_process(self, task_id: UUID) -> Process:
        return Process.model_validate_json((self.task_folder(task_id) / "keeper.json").read_text())

    def left_over(self) -> list[str]:
        """Processes that belong to this host still, by their command line, environment or open files."""
        found = []
        for path in Path("/proc").iterdir():
            if not path.name.isdigit() or int(path.name) == os.getpid():
                continue
            try:
                text = (path / "cmdline").read_bytes() + (path / "environ").read_bytes()
                text += b"".join(bytes(fd.readlink()) for fd in (path / "fd").iterdir())
                state = (path / "stat").read_bytes().rpartition(b")")[2].split()[0]
            except OSError:
                continue
            if os.fsencode(self.base) in text and state != b"Z":
                found.append(f"{path.name}: {text[:200]!r}")
        return found


@asynccontextmanager
async def host(**environment: str) -> AsyncIterator[Host]:
    """A host with a shim, and the check that nothing is left of it: no process, no folder of a task."""
    base = Path(tempfile.mkdtemp(prefix="p", dir="/tmp"))
    base.chmod(0o755)
    one = Host(base)
    one.environment = environment
    one.start_shim()
    try:
        shim = await one.shim()
        yield one
        shim = await one.shim()
        for task in (await shim.tasks()).tasks:
            await shim.terminate(task.id)
            await shim.remove(task.id)
        assert list(one.work.iterdir()) == []
        assert list((one.folder / "tasks").iterdir()) == []
        assert one.process is not None
        one.process.send_signal(signal.SIGTERM)
        assert one.process.wait(WITHIN) == 0
        await eventually(lambda: not one.left_over())
    finally:
        await one.agents.close()
        if one.process is not None and one.process.poll() is None:
            one.kill_shim()
        for line in one.left_over():
            os.kill(int(line.split(":")[0]), signal.SIGKILL)
        shutil.rmtree(base, ignore_errors=True)


@dataclass
class Started:
    """A job under way."""

    host: Host
    shim: ShimClient
    task: TaskConfig
    info: TaskInfo
    runner: RunnerClient

    @property
    def id(self) -> UUID:
        return self.task.id

    async def ended(self) -> JobState:
        """Its state once it has ended; a runner that is being replaced is waited for."""

        async def over() -> JobState | None:
            try:
                state = await self.runner.state(seen="running", wait=5)
            except AgentUnreachable:
                return None
            return state if state.state is RunnerState.ENDED else None

        return await eventually(over)

    async def log(self) -> bytes:
        """The whole log, read page by page until it is complete."""
        content = b""
        while True:
            try:
                page = await self.runner.logs(len(content), wait=5)
            except AgentUnreachable:
                await asyncio.sleep(0.02)
                continue
            content += page.content
            if page.complete and len(content) == page.length:
                return content

    async def printed(self, text: bytes) -> None:
        """Until the log has ``text``."""
        path = self.host.task_folder(self.id) / "log"
        await eventually(lambda: path.exists() and text in path.read_bytes())


def new_task(**fields: Any) -> TaskConfig:
    return TaskConfig(**{"id": uuid4(), "name": "job-0-0", "run_id": uuid4(), "slot": "0-0", **fields})


def job_of(task: TaskConfig, commands: list[str] | str, **fields: Any) -> SubmitBody:
    if isinstance(commands, str):
        commands = ["/bin/sh", "-c", commands]
    return SubmitBody(
        **{
            "run_id": task.run_id,
            "run_name": "job",
            "job_id": task.id,
            "job_name": task.name,
            "commands": commands,
            **fields,
        }
    )


async def submit(one: Host, task: TaskConfig) -> tuple[ShimClient, RunnerClient, TaskInfo]:
    """Give the shim a task and wait for its runner."""
    shim = await one.shim()
    info = await shim.submit_task(task)
    while info.status not in (TaskStatus.RUNNING, TaskStatus.TERMINATED):
        info = await shim.task(task.id, seen=info.status, wait=10)
    assert info.status is TaskStatus.RUNNING, info.termination_message
    return shim, one.agents.runner(one.endpoint, info.runner_socket), info


async def start(one: Host, commands: list[str] | str, task: TaskConfig | None = None, **fields: Any) -> Started:
    """Run a job through the client, as the worker does."""
    task = task or new_task()
    shim, runner, info = await submit(one, task)
    await runner.submit(job_of(task, commands, **fields))
    await runner.run()
    return Started(one, shim, task, info, runner)


def raw(one: Host, socket: str | None = None) -> httpx.AsyncClient:
    """A client without token."""
    return httpx.AsyncClient(
        base_url="http://agent", transport=httpx.AsyncHTTPTransport(uds=socket or one.endpoint.socket)
    )
