"""What a run's decisions depend on, resolved once from its configuration and recorded in its history."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from perdure.model.base import Message
from perdure.model.resources import Requirements
from perdure.model.statuses import RetryEvent, StartupOrder, StopCriteria
from perdure.model.timing import Timing


class Retry(Message):
    on: tuple[RetryEvent, ...]
    duration: float = 3600.0
    """Seconds of the window; measured from the event that DESIGN's table names."""

    max_attempts: int | None = None
    """Submissions in all, the first one included."""

    backoff: tuple[float, ...] = ()
    """Seconds before the 1st, 2nd, … retry; the last one repeats. Empty: ``Timing.retry_backoff``."""

    on_exit_codes: tuple[tuple[int, int], ...] = ()
    """Of a container that exited with an error, only these (lowest, highest) are tried again. Empty: all."""


class Schedule(Message):
    """When a run happens, again and again: five fields of standard cron, on the clock of a place."""

    cron: tuple[str, ...]
    timezone: str = "UTC"
    """A name of the IANA data base."""


class RunPolicy(Message):
    """The effective rules of one run. The full specification stays in Postgres (``runs.spec``)."""

    run_id: UUID
    project: str
    name: str
    user: str = ""
    kind: str = "task"
    submitted_at: datetime
    replicas: int = 1
    nodes: int = 1
    """Jobs of each replica."""

    startup_order: StartupOrder = StartupOrder.ANY
    stop_criteria: StopCriteria = StopCriteria.ALL_DONE
    retry: Retry | None = None
    schedule: Schedule | None = None
    priority: int = 0
    requirements: Requirements = Requirements()
    stop_duration: float | None = 300.0
    """Bound on a graceful stop; None is no bound."""

    idle_duration: float | None = 300.0
    """Of instances this run causes to be made; None never idles out."""

    stop_signal: str = "SIGTERM"
    """What a graceful stop sends first."""

    timing: Timing = Timing()
