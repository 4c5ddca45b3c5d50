"""Calls without a life of their own: standalone activities that the CLI and any client may execute.

Each is one name, one input, one result, on the ``perdure-io`` queue; only readers of logs, who mostly wait, are on
``perdure-watch``, where hundreds of them take nothing from anybody. Errors arrive as ``ApplicationError`` whose
type is the ``code`` of ``perdure.model.errors`` and whose details are a ``Problem``.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import Field, computed_field

from perdure.model.activities import Activity, Kind
from perdure.model.base import Message
from perdure.model.ends import exit_status_of
from perdure.model.errors import FieldError
from perdure.model.messages import Nothing
from perdure.model.origins import EffectiveValue
from perdure.model.resources import Offer, OfferFailure, Requirements
from perdure.model.statuses import JobStatus, RunStatus


class Problem(Message):
    """An expected error, for the wire."""

    code: str
    message: str
    hint: str | None = None
    errors: tuple[FieldError, ...] = ()


class Hello(Message):
    """Who answers. ``blobs`` is the blob store's folder or URL; a folder holds a file ``installation`` with the
    installation's id, by which a client on the same host knows it."""

    version: str
    installation: UUID
    public_key: str
    """X25519, base64: seals what may be read only by a worker."""

    blobs: str
    code_limit: int
    """Bytes of one code archive, uncompressed."""


class PlanRequest(Message):
    project: str
    configuration: dict[str, Any]
    flags: dict[str, Any] = Field(default_factory=dict[str, Any])
    """As in ``RunRequest``."""

    profile: dict[str, Any] = Field(default_factory=dict[str, Any])
    user: str = ""
    arguments: tuple[str, ...] = ()
    have_env: tuple[str, ...] = ()
    """Names whose values come sealed."""

    max_offers: int = 50


class PlannedOffer(Message):
    fleet: str
    instance: str | None = None
    """The idle instance that would be reused; None: one would be made."""

    offer: Offer
    availability: str = "available"
    """``idle``, ``busy``, ``available``, ``not_available``."""


class ActiveRun(Message):
    run_id: UUID
    status: str
    submitted_at: datetime
    user: str = ""


class Plan(Message):
    """What would happen. ``effective`` is every value in force, in the order it is shown."""

    name: str
    kind: str = "task"
    effective: tuple[EffectiveValue, ...] = ()
    requirements: Requirements = Requirements()
    nodes: int = 1
    offers: tuple[PlannedOffer, ...] = ()
    total_offers: int = 0
    short_of: int = 0
    """How many of the nodes could not be placed now."""

    failures: tuple[OfferFailure, ...] = ()
    active: ActiveRun | None = None
    """A run of this name that has not ended."""

    upcoming: tuple[str, ...] | None = None
    """The next times of its schedule, as its own clock shows them; None: it has none, and runs at once."""

    errors: tuple[FieldError, ...] = ()
    warnings: tuple[str, ...] = ()


class RunQuery(Message):
    project: str
    name: str | None = None
    run_id: UUID | None = None
    all: bool = False
    """Also those that have ended."""

    limit: int = 100


class JobRow(Message):
    job_id: UUID
    replica: int
    node: int
    submission: int
    status: str
    reason: str | None = None
    exit_status: int | None = None
    message: str = ""
    instance: str | None = None
    backend: str | None = None
    address: str | None = None
    price: float | None = None
    resources: str | None = None
    pull: tuple[int, int] | None = None
    """Bytes of the image pulled so far, and in all."""

    ports: tuple[tuple[int, int], ...] = ()
    """(port in the job, port on its host)."""

    log_bytes: int = 0
    log_complete: bool = False
    submitted_at: datetime | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None


class RunRow(Message):
    run_id: UUID
    project: str
    name: str
    user: str = ""
    kind: str = "task"
    status: str
    reason: str | None = None
    message: str = ""
    """Why it waits, or how it ended."""

    submitted_at: datetime
    ended_at: datetime | None = None
    replicas: int = 1
    nodes: int = 1
    """Jobs of each replica. There is a row only of those that have begun: one may wait for its turn."""

    jobs: tuple[JobRow, ...] = ()
    configuration: dict[str, Any] | None = None
    """Only when one run is asked for. No secret values."""

    failures: tuple[OfferFailure, ...] = ()
    """Only when one run is asked for: what does not do for it, and why, if it waits for capacity or found none."""

    @computed_field
    @property
    def exit_status(self) -> int | None:
        """What its end is about (see ``exit_status_of``); None while it lives."""
        return exit_status_of(
            RunStatus(self.status), ((JobStatus(job.status), job.exit_status) for job in self.last_attempt)
        )

    @property
    def last_attempt(self) -> tuple[JobRow, ...]:
        """The jobs of each replica's last submission, by replica and node."""
        last = {job.replica: job.submission for job in sorted(self.jobs, key=lambda job: job.submission)}
        jobs = (job for job in self.jobs if job.submission == last[job.replica])
        return tuple(sorted(jobs, key=lambda job: (job.replica, job.node)))

    def has(self, replica: int, node: int) -> bool:
        """Whether there is, or will be, such a job."""
        return 0 <= replica < self.replicas and 0 <= node < self.nodes


class RunRows(Message):
    runs: tuple[RunRow, ...] = ()


class LogQuery(Message):
    """Bytes of one job's log from ``offset``. Waits up to ``wait`` seconds for the first new byte."""

    job_id: UUID
    offset: int = 0
    limit: int = 1_000_000
    wait: float = 0.0
    inline: bool = True
    """False: only say how far it goes; the caller reads the blob itself."""


class LogPage(Message):
    offset: int
    next_offset: int
    data: str = ""
    """base64; empty unless ``inline``."""

    key: str = ""
    """The log's key in the blob store."""

    complete: bool = False
    """Nothing will follow ``next_offset``."""


class FleetQuery(Message):
    project: str


class InstanceRow(Message):
    instance_id: UUID
    name: str
    num: int
    status: str
    backend: str = ""
    region: str = ""
    resources: str = ""
    price: float = 0.0
    address: str | None = None
    busy_blocks: int = 0
    total_blocks: int = 1
    reason: str | None = None
    message: str = ""
    created_at: datetime


class FleetRow(Message):
    fleet_id: UUID
    project: str
    name: str
    status: str
    nodes: str = ""
    placement: str = "any"
    configuration: dict[str, Any] = Field(default_factory=dict[str, Any])
    created_at: datetime
    instances: tuple[InstanceRow, ...] = ()


class FleetRows(Message):
    fleets: tuple[FleetRow, ...] = ()


class SetSecret(Message):
    """Keep a value under this name; in place of the one before, if there is one."""

    project: str
    name: str
    sealed: str
    """The value, sealed with ``Hello.public_key``."""

    user: str = ""


class SecretRow(Message):
    """What is told of a secret. Never its value."""

    name: str
    created_at: datetime
    created_by: str = ""
    updated_at: datetime
    updated_by: str = ""


class SecretQuery(Message):
    project: str


class SecretRows(Message):
    secrets: tuple[SecretRow, ...] = ()


class GetSecret(Message):
    project: str
    name: str
    recipient: str
    """An X25519 public key made for this one question, base64: the answer is sealed with it."""


class SecretValue(Message):
    sealed: str


class DeleteSecret(Message):
    project: str
    name: str
    user: str = ""


class OfferQuery(Message):
    project: str
    requirements: dict[str, Any] = Field(default_factory=dict[str, Any])
    """A ``resources:`` mapping and profile fields, as in a configuration."""

    max_offers: int = 50


class OfferRows(Message):
    offers: tuple[PlannedOffer, ...] = ()
    total: int = 0
    failures: tuple[OfferFailure, ...] = ()


class EventQuery(Message):
    """The latest ``limit`` events of a project since a time, oldest first: all, or those of one thing by its name.

    ``within``: also of what belongs to it: a run's jobs and claims, a fleet's instances.
    """

    project: str
    since: datetime | None = None
    limit: int = Field(default=100, ge=1, le=1000)
    kind: Literal["run", "fleet", "instance", "secret"] | None = None
    name: str = ""
    within: bool = False


class EventTarget(Message):
    kind: str
    id: UUID
    name: str = ""


class EventRow(Message):
    """Something that changed. ``id`` grows with time within a transaction, and nearly so between them."""

    id: int
    at: datetime
    actor: str
    """``user ann``, ``user``, ``workflow``, ``agent`` or ``sweep``."""

    targets: tuple[EventTarget, ...]
    """What changed comes first, then what it belongs to or is on."""

    before: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str = ""
    """One sentence (``perdure.model.happenings``)."""

    data: dict[str, Any] = Field(default_factory=dict[str, Any])


class EventRows(Message):
    events: tuple[EventRow, ...] = ()


class StoryQuery(Message):
    """The newest run of this name, or the one with this id."""

    project: str
    name: str | None = None
    run_id: UUID | None = None


class StoryLine(Message):
    """One thing that happened."""

    text: str
    at: datetime | None = None


class Spell(Message):
    """A phase of an attempt: ``waiting``, ``getting ready``, ``starting``, ``pulling``, ``running``, ``ending``."""

    phase: str
    seconds: float
    over: bool = True
    """False: it still lasts."""


class Attempt(Message):
    """One submission of one replica, with its claims of capacity."""

    replica: int
    submission: int
    began_at: datetime
    ended_at: datetime | None = None
    lines: tuple[StoryLine, ...] = ()
    spells: tuple[Spell, ...] = ()


class Story(Message):
    """A run's life in plain words."""

    project: str
    name: str
    run_id: UUID | None = None
    """None: it was refused, and there is no run."""

    status: str
    reason: str | None = None
    headline: str
    """How it stands, or how it ended."""

    beginning: tuple[str, ...] = ()
    """Who wanted what."""

    attempts: tuple[Attempt, ...] = ()
    next: tuple[str, ...] = ()
    """What happens next, and when."""

    submitted_at: datetime | None = None
    ended_at: datetime | None = None


class Check(Message):
    """One invariant, and what breaks it."""

    invariant: str
    ok: bool
    findings: tuple[str, ...] = ()


class Checks(Message):
    checks: tuple[Check, ...] = ()


HELLO = Activity("hello", Kind.REMOTE, Nothing, Hello)
PLAN = Activity("plan", Kind.REMOTE, PlanRequest, Plan)
LIST_RUNS = Activity("list_runs", Kind.REMOTE, RunQuery, RunRows)
READ_LOG = Activity("read_log", Kind.WATCH, LogQuery, LogPage)
LIST_FLEETS = Activity("list_fleets", Kind.REMOTE, FleetQuery, FleetRows)
SET_SECRET = Activity("set_secret", Kind.REMOTE, SetSecret, SecretRow)
GET_SECRET = Activity("get_secret", Kind.REMOTE, GetSecret, SecretValue)
LIST_SECRETS = Activity("list_secrets", Kind.REMOTE, SecretQuery, SecretRows)
DELETE_SECRET = Activity("delete_secret", Kind.REMOTE, DeleteSecret, Nothing)
LIST_OFFERS = Activity("list_offers", Kind.REMOTE, OfferQuery, OfferRows)
LIST_EVENTS = Activity("list_events", Kind.REMOTE, EventQuery, EventRows)
EXPLAIN_RUN = Activity("explain_run", Kind.REMOTE, StoryQuery, Story)
DOCTOR = Activity("doctor", Kind.REMOTE, Nothing, Checks)

ALL: tuple[Activity[Any, Any], ...] = (
    HELLO,
    PLAN,
    LIST_RUNS,
    READ_LOG,
    LIST_FLEETS,
    SET_SECRET,
    GET_SECRET,
    LIST_SECRETS,
    DELETE_SECRET,
    LIST_OFFERS,
    LIST_EVENTS,
    EXPLAIN_RUN,
    DOCTOR,
)
