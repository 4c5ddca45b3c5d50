"""All tasks of an instance, and the fence between submissions of one slot."""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from pathlib import Path
from uuid import UUID

from starlette.exceptions import HTTPException

from perdure.agents import disk, identity
from perdure.agents.instance import Instance
from perdure.agents.protocol import TaskConfig
from perdure.agents.shim.record import Fences, TaskRecord, load_task
from perdure.agents.shim.task import Task
from perdure.agents.shim.zygote import Zygote

_LOG = logging.getLogger("perdure.shim")


class Tasks:
    def __init__(self, folder: Path, instance: Instance, zygote: Zygote):
        self._folder = folder
        self._instance = instance
        self._zygote = zygote
        self._tasks: dict[UUID, Task] = {}
        self._fences = disk.read(folder / "fences.json", Fences) or Fences()

    def adopt(self) -> None:
        """Take over what is on disk."""
        (self._folder / "tasks").mkdir(mode=0o700, exist_ok=True)
        for folder in sorted((self._folder / "tasks").iterdir()):
            found = None if folder.name.startswith(".") else load_task(folder)
            if found is None:
                _LOG.warning("%s is no task: removed", folder)
                shutil.rmtree(folder, ignore_errors=True)
                continue
            task = self._task(folder, *found)
            self._tasks[task.config.id] = task
            self._fence(task.config)
        for task in self._tasks.values():
            task.live(self._older(task.config))

    def all(self) -> list[Task]:
        """Every task, in no order."""
        return list(self._tasks.values())

    def get(self, task_id: UUID) -> Task:
        """The task of this id.

        Raises:
            HTTPException: 404
        """
        task = self._tasks.get(task_id)
        if task is None:
            raise HTTPException(404, "There is no such task.")
        return task

    def submit(self, config: TaskConfig) -> Task:
        """Take a task. The same id again is success; lower submissions of its slot are ended first.

        Raises:
            HTTPException: 409, it is not newer than what this slot has seen.
        """
        known = self._tasks.get(config.id)
        if known is not None:
            return known
        if not self._fences.passes(config):
            raise HTTPException(
                409, f"Submission {config.submission} of {config.name} was replaced or removed here."
            )
        task = self._create(config)
        self._fence(config)
        self._tasks[config.id] = task
        task.live(self._older(config))
        return task

    async def remove(self, task_id: UUID) -> None:
        """Remove a terminated task; an unknown one is gone already, and may not come any more: the call that brings
        it, given up by its sender, can still be under way."""
        task = self._tasks.get(task_id)
        if task is not None:
            await task.remove()
            self._tasks.pop(task_id, None)
        else:
            self._keep(self._fences.without(task_id, time.time()))

    async def vanish(self) -> None:
        """Their folder was deleted: end all of them."""
        await asyncio.gather(*(task.vanish() for task in self.all()))

    def _fence(self, config: TaskConfig) -> None:
        if self._fences.passes(config):
            self._keep(self._fences.with_task(config, time.time()))

    def _keep(self, fences: Fences) -> None:
        disk.write(self._folder / "fences.json", fences)
        self._fences = fences

    def _older(self, config: TaskConfig) -> list[Task]:
        """The tasks that this one takes the place of."""
        return [
            task
            for task in self._tasks.values()
            if Fences.key(task.config) == Fences.key(config) and task.config.submission < config.submission
        ]

    def _create(self, config: TaskConfig) -> Task:
        """On disk in one step: a folder that has everything, or none."""
        folder = self._folder / "tasks" / str(config.id)
        unfinished = folder.with_name(f".{config.id}")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        record = TaskRecord(boot=identity.boot_id())
        disk.write(unfinished / "config.json", config)
        disk.write(unfinished / "task.json", record)
        unfinished.rename(folder)
        return self._task(folder, config, record)

    def _task(self, folder: Path, config: TaskConfig, record: TaskRecord) -> Task:
        return Task(folder, config, record, self._instance, self._folder, self._zygote)
