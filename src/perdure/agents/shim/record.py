"""What a shim keeps on disk of each task, beside the TaskConfig in ``config.json``."""

from __future__ import annotations

from pathlib import Path

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
    """``fences.json``: what may not come again. Entries older than ``KEPT`` are forgotten."""

    slots: dict[str, Fence] = {}

    KEPT: float = 30 * 86400.0

    @staticmethod
    def key(task: TaskConfig) -> str:
        """The slot of a run; a task that names none is a slot of its own."""
        return f"{task.run_id}/{task.slot or task.id}"

    def passes(self, task: TaskConfig) -> bool:
        """Whether this submission is newer than all before."""
        fence = self.slots.get(self.key(task))
        return fence is None or task.submission > fence.submission

    def with_task(self, task: TaskConfig, now: float) -> Fences:
        """With this submission as the newest."""
        kept = {key: fence for key, fence in self.slots.items() if now - fence.at < self.KEPT}
        return Fences(slots={**kept, self.key(task): Fence(submission=task.submission, at=now)})


def load_task(folder: Path) -> tuple[TaskConfig, TaskRecord] | None:
    """What is on disk of the task in ``folder``."""
    config = disk.read(folder / "config.json", TaskConfig)
    record = disk.read(folder / "task.json", TaskRecord)
    return None if config is None or record is None else (config, record)
