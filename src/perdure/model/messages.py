"""Inputs and results of workflows and activities, one typed object in and one out."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from perdure.model.base import Message
from perdure.model.errors import FieldError
from perdure.model.events import JobEnded, JobReported, Nudge, Placement
from perdure.model.policy import RunPolicy, Schedule
from perdure.model.resources import Offer, OfferFailure, Requirements
from perdure.model.statuses import (
    ClaimStatus,
    InstanceReason,
    InstanceStatus,
    JobReason,
    JobStatus,
    RunReason,
    RunStatus,
)
from perdure.model.timing import Timing


class Nothing(Message):
    """The input or result of a step that takes or gives none."""


class Nudges(Message):
    nudges: tuple[Nudge, ...] = ()


# --- a run is submitted -------------------------------------------------------------------------------------


class CodeRef(Message):
    """Code in the blob store: a tar archive, named by its SHA-256, unpacked at ``path`` in the job."""

    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    size: int = Field(ge=0, lt=2**63)
    path: str = Field(default=".", max_length=4096)
    kind: Literal["repo", "files"] = "files"


class RunRequest(Message):
    """What RunWorkflow takes, as JSON. Only ``configuration`` is needed.

    ``configuration`` is the mapping the user wrote. ``sealed`` are environment values taken from the user's
    machine, each sealed with the worker's public key (base64). ``arguments`` stand for ``${{ run.args }}``.
    """

    configuration: dict[str, Any]
    flags: dict[str, Any] = Field(default_factory=dict[str, Any])
    """What the command line says instead, as in a configuration: it stands above ``configuration``."""

    profile: dict[str, Any] = Field(default_factory=dict[str, Any])
    """The chosen profile, as one item of ``profiles.yml``: it stands below ``configuration``."""

    user: str = Field(default="", max_length=200)
    code: tuple[CodeRef, ...] = ()
    sealed: dict[str, str] = Field(default_factory=dict[str, str])
    arguments: tuple[str, ...] = ()
    directory: str = Field(default="", max_length=4096)
    """Where the configuration was read, for messages."""


class ResolveRun(Message):
    """Validate and resolve, then write the run's row."""

    workflow_id: str
    run_id: UUID
    request: Any
    """As it came: anything JSON can be."""

    submitted_at: datetime


class Progress(Message):
    """How far one replica of a run had come: its latest claim, made by an execution that a Temporal reset has
    ended."""

    replica: int
    submission: int
    attempt: int
    clock: datetime | None = None
    """When the submission before it failed."""


class Resolved(Message):
    """Either a policy or every mistake. ``progress``: of a run that was resolved before, and made claims."""

    policy: RunPolicy | None = None
    errors: tuple[FieldError, ...] = ()
    progress: tuple[Progress, ...] = ()


class RunRecord(Message):
    """The run's line in the projection, and which ends it has heard (``job ids``)."""

    run_id: UUID
    status: RunStatus
    reason: RunReason | None = None
    status_message: str = ""
    """Why it waits, or how it ended, in words."""

    heard: tuple[UUID, ...] = ()
    notes: tuple[Note, ...] = ()
    at: datetime
    final: bool = False


class CatchUp(Message):
    """Ask how a run's jobs stand, as Postgres knows it; ``submission`` None: the latest of each.

    ``claim_id``: only those that were started on this claim.
    """

    run_id: UUID
    replica: int | None = None
    submission: int | None = None
    claim_id: UUID | None = None


class Caught(Message):
    news: tuple[JobReported | JobEnded, ...] = ()


# --- a schedule ---------------------------------------------------------------------------------------------


class CalendarQuestion(Message):
    """Which slots of a schedule are in ``(since, until]``, and which comes after."""

    schedule: Schedule
    since: datetime
    until: datetime


class CalendarPage(Message):
    """The answer, recorded once: time zones may change under us.

    ``words``: times as the schedule's own clock shows them.
    """

    count: int = 0
    more: bool = False
    """There are more than ``count``."""

    first_words: str = ""
    last: datetime | None = None
    """The latest slot that is due."""

    last_words: str = ""
    next: datetime | None = None
    """The first slot after ``until``; None: there is none any more."""

    next_words: str = ""


class Note(Message):
    """Something to be told of a run, in words. Its number is its own in that run: written once."""

    number: int
    at: datetime
    text: str


# --- placement ----------------------------------------------------------------------------------------------


class ClaimRequest(Message):
    """All nodes of one replica, all or none."""

    claim_id: UUID
    run_id: UUID
    project: str
    owner: str
    """Workflow id to tell."""

    replica: int
    submission: int
    nodes: int
    priority: int
    requirements: Requirements
    wait: bool
    """Queue if it does not fit now (``retry`` on no-capacity)."""

    idle_duration: float | None = 300.0
    queue_patience: float = 600.0
    keep: float = 0.0
    """Seconds that instances already had stay idle for it if another one cannot be had (the retry backoff)."""

    not_before: datetime | None = None
    """It waits until then, whatever is free; ask again when the time has come."""


class ClaimAnswer(Message):
    status: ClaimStatus
    placements: tuple[Placement, ...] = ()
    message: str = ""
    tried: tuple[OfferFailure, ...] = ()
    again: bool = False
    """It had been answered before: jobs may have been started on it (a Temporal reset, a step run again)."""

    nudges: tuple[Nudge, ...] = ()


class ClaimRef(Message):
    claim_id: UUID
    run_id: UUID


# --- instances ----------------------------------------------------------------------------------------------


class InstanceInput(Message):
    """What InstanceWorkflow takes. All else is in the instance's row."""

    instance_id: UUID
    name: str = ""
    project: str = ""
    timing: Timing = Timing()


class InstanceRef(Message):
    instance_id: UUID


class InstanceView(Message):
    """An instance's row, as its workflow needs it."""

    instance_id: UUID
    status: InstanceStatus
    backend: str = ""
    name: str = ""
    idle_until: datetime | None = None
    """When its idle time is over, if it is idle and has such a time."""

    idle_duration: float | None = None
    """Seconds after which to look again, at the latest; None: it never idles out."""

    reason: InstanceReason | None = None
    nudges: tuple[Nudge, ...] = ()


class Created(Message):
    """What came of creating: an accepted offer, or each one's failure."""

    offer: Offer | None = None
    tried: tuple[OfferFailure, ...] = ()
    doubtful: bool = False
    """Not every provider has clearly said no: something may yet come to light."""


class Reached(Message):
    """The shim answered: where the instance is."""

    address: str = ""
    reached: bool = True
    message: str = ""
    gone: bool = False
    """Nor will it ever be: its provider says that it is gone."""


class InstanceReady(Message):
    instance_id: UUID
    address: str


class InstanceLost(Message):
    """It could not be made, or never answered: fail its claims, then terminate what there is."""

    instance_id: UUID
    reason: InstanceReason
    message: str
    tried: tuple[OfferFailure, ...] = ()


class Termination(Message):
    gone: bool
    message: str = ""
    known: bool = True
    """False: gone, as far as the provider knows, which has never listed it; what it accepted a moment ago may be
    listed later."""


# --- jobs ---------------------------------------------------------------------------------------------------


class JobKey(Message):
    """One submission of one job, on the instance it was placed on."""

    run_id: UUID
    job_id: UUID
    replica: int
    node: int
    submission: int


class JobInput(Message):
    """What JobWorkflow takes. The specification is in Postgres, under ``run_id``."""

    key: JobKey
    project: str
    run_name: str
    owner: str
    claim_id: UUID
    instance_id: UUID
    addresses: tuple[str, ...]
    """Of all nodes of the replica, in rank order."""

    stop_duration: float | None = 300.0
    timing: Timing = Timing()


class JobStep(Message):
    """The input of every step of a job at its agents."""

    key: JobKey
    claim_id: UUID
    instance_id: UUID
    addresses: tuple[str, ...] = ()
    timing: Timing = Timing()


class JobRecord(Message):
    """A job's line in the projection; inserted if it is new, and never taken back from a final status."""

    key: JobKey
    claim_id: UUID
    instance_id: UUID
    status: JobStatus
    at: datetime


class JobOutcome(Message):
    """How a job's step, or the job, came out. ``reason`` None: well, go on."""

    reason: JobReason | None = None
    exit_status: int | None = None
    message: str = ""
    unreachable: bool = False
    """The agent has not been heard from: the blocks are not known to be clean."""

    instance_gone: bool = False
    """Nor will it be: its instance is there no more."""


class StopJob(Message):
    """Stop what runs: the whole process tree, gently within ``grace`` seconds, then for certain."""

    step: JobStep
    grace: float
    reason: JobReason


class JobEnd(Message):
    """Write the end, and release the block, in one transaction."""

    key: JobKey
    owner: str
    claim_id: UUID
    instance_id: UUID
    status: JobStatus
    reason: JobReason
    exit_status: int | None = None
    message: str = ""
    at: datetime
    quarantine: bool = False
    """The agent was not heard from: nobody gets this block until it is known to be clean."""

    instance_gone: bool = False
    """The provider says that the instance is there no more: it is lost with the job."""


# --- fleets -------------------------------------------------------------------------------------------------


class FleetInput(Message):
    """What FleetWorkflow takes: the fleet's configuration as a mapping."""

    configuration: dict[str, Any]
    user: str = Field(default="", max_length=200)
    timing: Timing = Timing()


class FleetRecord(Message):
    project: str
    name: str
    configuration: dict[str, Any]
    deleting: bool = False
    again: bool = True
    """Make instances up to ``nodes.min`` also if those made last could not be had."""

    user: str = ""
    """Who wants this, if somebody just asked for it."""


class FleetView(Message):
    fleet_id: UUID | None = None
    errors: tuple[FieldError, ...] = ()
    missing: int = 0
    """How many instances ``nodes.min`` still asks for, and no row was made for them: nothing can make them now, or
    the last ones could not be had."""

    why: str = ""
    """What became of those made last, if they could not be had."""

    fresh: tuple[Placement, ...] = ()
    """Instances whose workflow is to be started."""

    live: int = 0
    gone: bool = False
    """It is deleted, and its last instance is gone."""

    nudges: tuple[Nudge, ...] = ()


# --- the sweep ----------------------------------------------------------------------------------------------


class Finding(Message):
    """One thing nobody owns, or nobody was told, and what was or will be done about it.

    ``kind``: ``orphan-instance`` (the provider has it, no live row), ``closed-instance`` (live row, closed
    workflow), ``closed-owner`` (claim or job whose run is closed), ``lost-job`` (a run believes it alive, its
    workflow is closed), ``untold`` (a grant, readiness or end nobody acted on), ``stale-task`` (an agent has it,
    no live job), ``quarantine`` (a block waiting for its host to be heard from), ``lost-instance`` (live row, gone
    for its provider), ``capacity`` (a claim that waited for what is there now).
    """

    kind: str
    subject: str
    message: str
    nudges: tuple[Nudge, ...] = ()
    start_instance: InstanceInput | None = None
    settled: bool = False


class Findings(Message):
    findings: tuple[Finding, ...] = ()
