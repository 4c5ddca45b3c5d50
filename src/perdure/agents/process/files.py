"""Where a process job's things are: its task's folder, which is ours, and its own folder, which is its home.

::

    {shim folder}/tasks/{id}/     keeper.lock  keeper.spec  keeper.json  exit.json  log  archives/
    {work_dir}/{id}/home          HOME, and the working directory unless the job names one
    {work_dir}/{id}/root/…        what the job sees at absolute paths that are its own
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from pydantic import BaseModel

from perdure.agents import disk
from perdure.agents.identity import Process


class ExitRecord(BaseModel):
    """``exit.json``: how the main process ended. ``failed``: it never came to run, by no fault of its own."""

    status: int
    failed: bool = False
    message: str = ""
    lost: int = 0
    """Bytes of output that found no room on the disk."""


@dataclass(frozen=True)
class ProcessFiles:
    task: Path
    own: Path

    @classmethod
    def of(cls, task_folder: Path, work_dir: Path, job_id: UUID) -> ProcessFiles:
        return cls(task_folder, work_dir / str(job_id))

    @property
    def home(self) -> Path:
        return self.own / "home"

    @property
    def root(self) -> Path:
        return self.own / "root"

    @property
    def lock(self) -> Path:
        return self.task / "keeper.lock"

    @property
    def spec(self) -> Path:
        return self.task / "keeper.spec"

    @property
    def log(self) -> Path:
        return self.task / "log"

    def keeper(self) -> Process | None:
        """The keeper, if it was ever started."""
        return disk.read(self.task / "keeper.json", Process)

    def exit(self) -> ExitRecord | None:
        """How the job ended, if it has."""
        return disk.read(self.task / "exit.json", ExitRecord)
