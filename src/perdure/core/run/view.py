"""What a run looks like from outside: its status and one sentence why."""

from __future__ import annotations

from datetime import datetime

from perdure.core.run.calendar import in_words
from perdure.core.run.retry import failed
from perdure.core.run.state import Phase, Replica, RunState
from perdure.model.base import Message
from perdure.model.statuses import JobStatus, RunReason, RunStatus


class RunView(Message):
    status: RunStatus
    reason: RunReason | None = None
    message: str = ""


def view(state: RunState) -> RunView:
    """The run's status by the first rule that holds (``docs/lifecycle.md``): terminating, running, provisioning,
    submitted, pending."""
    if state.ending is not None:
        return RunView(status=RunStatus.TERMINATING, reason=state.ending, message=state.ending_message)
    if state.calendar is not None and state.idle:
        return RunView(status=RunStatus.PENDING, message=in_words(state.calendar))
    seen = {status for replica in state.replicas for status in _contributes(replica)}
    for status in (RunStatus.RUNNING, RunStatus.PROVISIONING, RunStatus.SUBMITTED, RunStatus.PENDING):
        if status in seen:
            return RunView(status=status, message=_message(state))
    return RunView(status=RunStatus.PROVISIONING)


def _contributes(replica: Replica) -> set[RunStatus]:
    """What one replica adds; one that is to be tried again adds nothing but pending."""
    if replica.failure is not None:
        return {RunStatus.PENDING}
    match replica.phase:
        case Phase.RESTING:
            waits = replica.not_before is not None
            return {RunStatus.PENDING if waits else RunStatus.SUBMITTED}
        case Phase.CLAIMING | Phase.WAITING:
            return {RunStatus.SUBMITTED}
        case Phase.MAKING:
            return {RunStatus.PROVISIONING}
        case Phase.LIVE:
            return {_of_job(job.status) for job in replica.jobs if not failed(job)} - {RunStatus.DONE}
        case Phase.OVER:
            return set()


def _of_job(status: JobStatus) -> RunStatus:
    match status:
        case JobStatus.RUNNING:
            return RunStatus.RUNNING
        case JobStatus.DONE:
            return RunStatus.DONE
        case _:
            return RunStatus.PROVISIONING


def _message(state: RunState) -> str:
    """Why it waits, if it does."""
    for replica in state.replicas:
        if replica.phase is Phase.WAITING:
            return "waiting for capacity" + (f": {replica.message}" if replica.message else "")
        if replica.phase is Phase.RESTING and replica.not_before is not None:
            return f"trying again at {_clock(replica.not_before)}" + (
                f" after: {replica.message}" if replica.message else ""
            )
        if replica.phase is Phase.MAKING:
            return "waiting for its instances to be ready"
        if replica.failure is not None:
            return f"to be tried again: {replica.failure.message}"
    return ""


def _clock(time: datetime) -> str:
    return time.strftime("%H:%M:%S UTC")
