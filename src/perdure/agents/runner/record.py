"""What a runner keeps on disk: ``job.json`` in the task's folder."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel

from perdure.agents.protocol import RunAnswer, RunnerState, StopBody, SubmitBody


class Phase(StrEnum):
    """``starting`` is written before anything of the job is started."""

    WAIT_SUBMIT = "wait_submit"
    WAIT_RUN = "wait_run"
    STARTING = "starting"
    RUNNING = "running"
    ENDED = "ended"

    @property
    def state(self) -> RunnerState:
        return RunnerState.RUNNING if self is Phase.STARTING else RunnerState(self.value)


class Result(BaseModel):
    reason: str
    message: str = ""
    exit_status: int | None = None
    note: str = ""
    """What the executor adds, whatever the reason: that some of the log is missing."""


class JobRecord(BaseModel):
    """``started`` and ``stop_at``: seconds since the host's boot."""

    phase: Phase = Phase.WAIT_SUBMIT
    job: SubmitBody | None = None
    started: float | None = None
    boot: str = ""
    answer: RunAnswer | None = None
    stop: StopBody | None = None
    stop_at: float | None = None
    """When the grace is over."""

    result: Result | None = None
    acknowledged: bool = False

    @classmethod
    def path(cls, folder: Path) -> Path:
        return folder / "job.json"
