"""Every activity a workflow may call, by name, with the types that go in and out.

Workflows import this, never the implementations; ``activities/`` implements exactly these, which worker assembly
checks when it starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, TypeVar

from perdure.model import messages as m
from perdure.model.base import Message
from perdure.model.names import IO_QUEUE, WATCH_QUEUE, WORKFLOW_QUEUE

In = TypeVar("In", bound=Message)
Out = TypeVar("Out", bound=Message)


class Kind(StrEnum):
    """How an activity is run: one short Postgres transaction, a remote step, or a long watch."""

    TRANSACTION = WORKFLOW_QUEUE
    REMOTE = IO_QUEUE
    WATCH = WATCH_QUEUE


@dataclass(frozen=True)
class Activity(Generic[In, Out]):
    name: str
    kind: Kind
    takes: type[In]
    gives: type[Out]


RESOLVE_RUN = Activity("resolve_run", Kind.TRANSACTION, m.ResolveRun, m.Resolved)
RECORD_RUN = Activity("record_run", Kind.TRANSACTION, m.RunRecord, m.Nothing)
READ_CALENDAR = Activity("read_calendar", Kind.TRANSACTION, m.CalendarQuestion, m.CalendarPage)
CATCH_UP = Activity("catch_up", Kind.TRANSACTION, m.CatchUp, m.Caught)

CLAIM = Activity("claim", Kind.TRANSACTION, m.ClaimRequest, m.ClaimAnswer)
WITHDRAW_CLAIM = Activity("withdraw_claim", Kind.TRANSACTION, m.ClaimRef, m.Nudges)

RECORD_JOB = Activity("record_job", Kind.TRANSACTION, m.JobRecord, m.Nothing)
SUBMIT_TASK = Activity("submit_task", Kind.REMOTE, m.JobStep, m.JobOutcome)
START_JOB = Activity("start_job", Kind.REMOTE, m.JobStep, m.JobOutcome)
WATCH_JOB = Activity("watch_job", Kind.WATCH, m.JobStep, m.JobOutcome)
STOP_JOB = Activity("stop_job", Kind.REMOTE, m.StopJob, m.JobOutcome)
REMOVE_TASK = Activity("remove_task", Kind.REMOTE, m.JobStep, m.JobOutcome)
END_JOB = Activity("end_job", Kind.TRANSACTION, m.JobEnd, m.Nudges)

VIEW_INSTANCE = Activity("view_instance", Kind.TRANSACTION, m.InstanceRef, m.InstanceView)
CREATE_INSTANCE = Activity("create_instance", Kind.REMOTE, m.InstanceRef, m.Created)
REACH_INSTANCE = Activity("reach_instance", Kind.REMOTE, m.InstanceRef, m.Reached)
INSTANCE_READY = Activity("instance_ready", Kind.TRANSACTION, m.InstanceReady, m.InstanceView)
INSTANCE_LOST = Activity("instance_lost", Kind.TRANSACTION, m.InstanceLost, m.InstanceView)
RETIRE_INSTANCE = Activity("retire_instance", Kind.TRANSACTION, m.InstanceRef, m.InstanceView)
TERMINATE_INSTANCE = Activity("terminate_instance", Kind.REMOTE, m.InstanceRef, m.Termination)
INSTANCE_GONE = Activity("instance_gone", Kind.TRANSACTION, m.InstanceRef, m.InstanceView)

RECORD_FLEET = Activity("record_fleet", Kind.TRANSACTION, m.FleetRecord, m.FleetView)

SWEEP = Activity("sweep", Kind.REMOTE, m.Nothing, m.Findings)

ALL: tuple[Activity[Any, Any], ...] = (
    RESOLVE_RUN,
    RECORD_RUN,
    READ_CALENDAR,
    CATCH_UP,
    CLAIM,
    WITHDRAW_CLAIM,
    RECORD_JOB,
    SUBMIT_TASK,
    START_JOB,
    WATCH_JOB,
    STOP_JOB,
    REMOVE_TASK,
    END_JOB,
    VIEW_INSTANCE,
    CREATE_INSTANCE,
    REACH_INSTANCE,
    INSTANCE_READY,
    INSTANCE_LOST,
    RETIRE_INSTANCE,
    TERMINATE_INSTANCE,
    INSTANCE_GONE,
    RECORD_FLEET,
    SWEEP,
)
