"""What a shim keeps on disk of each task, beside the TaskConfig in ``config.json``."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar
from uuid import UUID

from pydantic import BaseModel

from perdure.agents import disk
from perdure.agents.protocol import PortMapping, TaskConfig, TaskStatus, Terminate


class TaskRecord(BaseModel):
    """``task.json``. ``boot``: in which boot of the host the task was last taken care of."""

    status: TaskStatus = TaskStatus.PENDING
    boot: str
    ports: list[PortMapping] = []
    terminating: Terminate | None = None
    termination_reason: str = ""
    termination_message: str = ""


class Fence(BaseModel):
    """The highest submission of one slot of a run that was ever accepted here, and when (seconds since 1970)."""

    submission: int
    at: float


class Fences(BaseModel):
    """``fences.json``: what may not come again. Slots are forgotten after ``KEPT`` seconds.

    ``removed``: tasks that were removed before they came, and when. The call that brings one is under way for a
    minute at most, so they are kept for ``LATE`` seconds, and the newest ``MOST`` of them.
    """

    slots: dict[str, Fence] = {}
    removed: dict[UUID, float] = {}

    KEPT: ClassVar[float] = 30 * 86400.0
    LATE: ClassVar[float] = 3600.0
    MOST: ClassVar[int] = 1000

    @staticmethod
    def key(task: TaskConfig) -> str:
        """The slot of a run; a task that names none is a slot of its own."""
        return f"{task.run_id}/{task.slot or task.id}"

    def passes(self, task: TaskConfig) -> bool:
        """Whether this submission is newer than all before, and nobody has removed it yet."""
        if task.id in self.removed:
            return False
        fence = self.slots.get(self.key(task))
        return fence is None or task.submission > fence.submission

    def with_task(self, task: TaskConfig, now: float) -> Fences:
        """With this submission as the newest."""
        kept = {key: fence for key, fence in self.slots.items() if now - fence.at < self.KEPT}
        slots = {**kept, self.key(task): Fence(submission=task.submission, at=now)}
        return self.model_copy(update={"slots": slots})

    def without(self, task_id: UUID, now: float) -> Fences:
        """With a task that may not come any more."""
        late = [(key, at) for key, at in self.removed.items() if now - at < self.LATE and key != task_id]
        return self.model_copy(update={"removed": dict([*late[-self.MOST + 1 :], (task_id, now)])})


def load_task(folder: Path) -> tuple[TaskConfig, TaskRecord] | None:
    """What is on disk of the task in ``folder``."""
    config = disk.read(folder / "config.json", TaskConfig)
    record = disk.read(folder / "task.json", TaskRecord)
    return None if config is None or record is None else (config, record)
