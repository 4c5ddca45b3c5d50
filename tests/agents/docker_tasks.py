"""Tasks on a real container engine, driven as shim and runner drive them, and the check of what they leave."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from perdure.agents.docker import DockerExecution, DockerPreparation
from perdure.agents.execution import Exit
from perdure.agents.instance import Instance
from perdure.agents.protocol import PortMapping, PullProgress, RunAnswer, SubmitBody, TaskConfig
from tests.support.engine import ContainerEngine, container_engine
from tests.support.registry import Registry
from tests.support.registry import registry as running_registry

IMAGE = "perdure.test/busybox:1"
"""Nothing answers at that registry: it is only ever found in the engine."""

WATCHER = "tests.agents.docker_watcher"
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def engine() -> Iterator[ContainerEngine]:
    """An engine in the host's network, with ``IMAGE``."""
    with container_engine() as one:
        one.make_image(IMAGE)
        yield one


@pytest.fixture(scope="session")
def bridged() -> Iterator[ContainerEngine]:
    """An engine with a bridge, in a network of its own, with ``IMAGE``."""
    with container_engine(bridge=True) as one:
        one.make_image(IMAGE)
        yield one


@pytest.fixture(scope="session")
def registry() -> Iterator[Registry]:
    with running_registry() as one:
        yield one


@pytest.fixture
async def tasks(engine: ContainerEngine) -> AsyncIterator[Tasks]:
    """Tasks on ``engine``; at the end nothing of them may be left."""
    async with tasks_on(engine) as some:
        yield some


@asynccontextmanager
async def tasks_on(engine: ContainerEngine) -> AsyncIterator[Tasks]:
    """Tasks on an engine, and the check that they leave no container and no volume."""
    base = Path(tempfile.mkdtemp(prefix="pt", dir="/tmp"))
    some = Tasks(engine, base)
    try:
        yield some
        for task in some.all:
            await task.preparation.remove(task.config, task.folder)
        assert engine.containers() == []
        assert engine.volumes() == []
    finally:
        for task in some.all:
            task.kill_watcher()
        for container in engine.containers():
            engine.http.delete(f"/containers/{container['Id']}", params={"force": 1, "v": 1})
        shutil.rmtree(base)


class Tasks:
    """Makes tasks in the folder of one shim."""

    def __init__(self, engine: ContainerEngine, base: Path):
        self.engine = engine
        self.base = base
        self.all: list[Task] = []
        self.instance = Instance(instance_id=uuid4(), token="t", work_dir=base / "work")

    def make(self, *argv: str, image: str = IMAGE, job: dict[str, Any] | None = None, **config: Any) -> Task:
        """A task that runs ``argv``; ``config`` is of TaskConfig, ``job`` of SubmitBody."""
        task = TaskConfig(**{"id": uuid4(), "name": "train-0-0", "run_id": uuid4(), "image_name": image, **config})
        body: dict[str, Any] = {"run_id": task.run_id, "run_name": "train", "job_id": task.id}
        body |= {"job_name": task.name, "commands": list(argv), **(job or {})}
        one = Task(self, task, SubmitBody(**body))
        self.all.append(one)
        return one

    def shell(self, script: str, **more: Any) -> Task:
        """A task that runs a script by the image's shell."""
        return self.make("/bin/sh", "-c", script, **more)


class Task:
    """One task: its two halves and its folder."""

    def __init__(self, tasks: Tasks, config: TaskConfig, job: SubmitBody):
        self.engine = tasks.engine
        self.config = config
        self.job = job
        self.folder = tasks.base / "tasks" / str(config.id)
        (self.folder / "archives").mkdir(parents=True)
        (self.folder / "config.json").write_text(config.model_dump_json())
        (self.folder / "job.json").write_text(job.model_dump_json())
        self.preparation = DockerPreparation(tasks.instance, tasks.base, tasks.engine.address)
        self.execution = DockerExecution(config, self.folder, tasks.instance, tasks.engine.address)
        self.progress: list[PullProgress] = []
        self._watcher: subprocess.Popen[bytes] | None = None

    async def prepare(self) -> list[PortMapping]:
        return await self.preparation.prepare(self.config, self.folder, self.progress.append)

    async def start(self) -> RunAnswer:
        """Prepare and start."""
        await self.prepare()
        return await self.execution.start(self.job)

    async def run(self) -> Exit:
        """From prepare to the end."""
        await self.start()
        return await self.execution.wait()

    @property
    def log(self) -> bytes:
        path = self.folder / "log"
        return path.read_bytes() if path.exists() else b""

    @property
    def container(self) -> dict[str, Any]:
        """The engine's word on its container."""
        (found,) = [each for each in self.engine.containers() if str(self.config.id) in each["Labels"].values()]
        return self.engine.inspect(found["Id"])

    def watch(self) -> subprocess.Popen[bytes]:
        """Start and wait in a process of its own, as a runner does, which writes ``result.json``."""
        self._watcher = subprocess.Popen(
            [sys.executable, "-m", WATCHER, str(self.folder), self.engine.address], cwd=ROOT
        )
        return self._watcher

    def kill_watcher(self) -> None:
        """kill -9, if there is one."""
        if self._watcher is not None and self._watcher.poll() is None:
            os.kill(self._watcher.pid, signal.SIGKILL)
            self._watcher.wait()

    @property
    def result(self) -> Exit | None:
        """What the watching process found."""
        path = self.folder / "result.json"
        if not path.exists():
            return None
        status, _, message = path.read_text().partition(" ")
        return Exit(int(status), message)
