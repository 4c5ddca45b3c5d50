"""How a runner runs its job on this host: one protocol, two ways (``process``, ``docker``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from perdure.agents.protocol import PortMapping, PullProgress, RunAnswer, SubmitBody, TaskConfig


class ExecutionError(Exception):
    """An expected failure to prepare or start a job; ``reason`` is a JobReason value."""

    def __init__(self, reason: str, message: str):
        super().__init__(message)
        self.reason = reason
        self.message = message


@dataclass(frozen=True)
class Exit:
    """How the main process ended. ``exit_status`` as a shell says it: 0 to 255, 128 + signal."""

    exit_status: int
    message: str = ""
    """More than the number tells: ``out of memory: the limit is 512 MB``, ``command not found: foo``."""


class Preparation(Protocol):
    """The shim's half: make the host ready for a task, and leave nothing of it behind."""

    async def prepare(
        self, task: TaskConfig, folder: Path, progress: Callable[[PullProgress], None]
    ) -> list[PortMapping]:
        """Pull what is missing and decide the ports. Cancelled by a terminate; safe to repeat.

        Raises:
            ExecutionError: with ``creating_container_error`` or ``executor_error``.
        """
        ...

    async def has_result(self, task: TaskConfig, folder: Path) -> bool:
        """After the host restarted: whether the job had ended before, so that its end can still be told."""
        ...

    async def remove(self, task: TaskConfig, folder: Path) -> None:
        """Kill what is left of the task, wholly, and delete its container and volumes. Safe to repeat."""
        ...


class Execution(Protocol):
    """The runner's half. All state is in ``folder`` or with the engine: a runner started again, for a task that
    already runs or has ended, gets the same answers.

    The log is the file ``folder/log``: what the job wrote to stdout and stderr, byte for byte, append only.
    """

    async def start(self, job: SubmitBody) -> RunAnswer:
        """Start the main process, once: called again, it only answers.

        Raises:
            ExecutionError
        """
        ...

    async def wait(self) -> Exit:
        """Until the main process has ended and all its output is in the log."""
        ...

    async def signal(self, name: str) -> None:
        """Send a signal (``SIGTERM``) to every process of the job."""
        ...

    async def kill(self) -> None:
        """End every process of the job, double forks included, and check that none is left."""
        ...
