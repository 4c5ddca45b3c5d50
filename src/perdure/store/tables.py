"""What Postgres keeps. The invariants are constraints here first, and code second.

Ids are UUIDs; names are for people, and unique only among the living. Statuses are text that ``model.statuses``
gives meaning. Amounts: dollars an hour, seconds, bytes. Times are with time zone.
"""

# pyright: reportAssignmentType=false, reportIncompatibleVariableOverride=false
# (SQLModel declares __tablename__ as something else than the text it takes.)
from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    DateTime,
    ForeignKey,
    Identity,
    Index,
    LargeBinary,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

NOW = text("now()")
LIVING = text("status <> 'terminated'")


def _one_of(column: str, *values: str) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=f"{column}_known")


def _time(*, default: bool = False) -> dict[str, Any]:
    """A column's arguments: a time, with the transaction's own as default if asked."""
    arguments: dict[str, Any] = {"sa_type": DateTime(timezone=True)}
    if default:
        arguments["sa_column_kwargs"] = {"server_default": NOW}
    return arguments


class Installation(SQLModel, table=True):
    """One row: who we are. A restored backup gets a new epoch, so that it leaves others' instances alone."""

    __tablename__ = "installation"
    __table_args__ = (CheckConstraint("singleton", name="one_row"),)

    singleton: bool = Field(default=True, primary_key=True)
    id: UUID
    epoch: int = 1
    created_at: datetime = Field(**_time(default=True))


class Project(SQLModel, table=True):
    """Its row is the lock of its queue: whatever claims or frees capacity takes it first."""

    __tablename__ = "projects"

    id: UUID = Field(default_factory=uuid4, primary_key=True)
    name: str = Field(unique=True)
    created_at: datetime = Field(**_time(default=True))


class Fleet(SQLModel, table=True):
    __tablename__ = "fleets"
    __table_args__ = (
        _one_of("status", "submitted", "active", "terminating", "terminated", "failed"),
        _one_of("placement", "any", "cluster"),
        CheckConstraint("nodes_min >= 0 AND (nodes_max IS NULL OR nodes_max >= nodes_min)", name="nodes"),
        Index("fleets_living_name", "project_id", "name", unique=True, postgresql_where=LIVING),
    )

    id: UUID = Field(default_factory=uuid4, primary_key=True)
    project_id: UUID = Field(sa_column_args=(ForeignKey("projects.id"),))
    name: str
    status: str = "active"
    nodes_min: int = 0
    nodes_max: int | None = None
    placement: str = "any"
    blocks: int = 1
    idle_duration: float | None = 300.0
    requirements: dict[str, Any] = Field(sa_type=JSONB)
    """``model.resources.Requirements``: what its instances must be."""

    configuration: dict[str, Any] = Field(sa_type=JSONB)
    created_at: datetime = Field(**_time(default=True))
    ended_at: datetime | None = Field(default=None, **_time())


class Instance(SQLModel, table=True):
    """Written before the provider is asked; ``terminated`` only when the provider says that it is gone."""

    __tablename__ = "instances"
    __table_args__ = (
        _one_of("status", "pending", "provisioning", "idle", "busy", "terminating", "terminated"),
        CheckConstraint("busy_blocks BETWEEN 0 AND total_blocks", name="blocks"),
        CheckConstraint("total_blocks > 0", name="some_blocks"),
        CheckConstraint("status <> 'idle' OR busy_blocks = 0", name="idle_is_free"),
        CheckConstraint("status <> 'busy' OR busy_blocks > 0", name="busy_is_held"),
        CheckConstraint("status <> 'terminated' OR busy_blocks = 0", name="gone_is_free"),
        Index("instances_living_num", "fleet_id", "num", unique=True, postgresql_where=LIVING),
        Index(
            "instances_free",
            "fleet_id",
            "num",
            postgresql_where=text(
                "busy_blocks < total_blocks AND status IN ('pending', 'provisioning', 'idle', 'busy')"
            ),
        ),
    )

    id: UUID = Field(default_factory=uuid4, primary_key=True)
    project_id: UUID = Field(sa_column_args=(ForeignKey("projects.id"),))
    fleet_id: UUID = Field(sa_column_args=(ForeignKey("fleets.id"),))
    num: int
    name: str
    status: str = "pending"
    reason: str | None = None
    message: str = ""
    backend: str = ""
    region: str = ""
    offers: list[Any] = Field(sa_type=JSONB)
    """To try in order, kept at the grant."""

    offer: dict[str, Any] | None = Field(default=None, sa_type=JSONB)
    """The one that was taken."""

    failures: list[Any] = Field(default=[], sa_type=JSONB, sa_column_kwargs={"server_default": "[]"})
    token: str
    address: str | None = None
    total_blocks: int = 1
    busy_blocks: int = 0
    idle_duration: float | None = 300.0
    idle_since: datetime | None = Field(default=None, **_time())
    keep_until: datetime | None = Field(default=None, **_time())
    """Not retired before, whatever its idle time: its claim comes back."""

    heard_at: datetime | None = Field(default=None, **_time())
    created_at: datetime = Field(**_time(default=True))
    ended_at: datetime | None = Field(default=None, **_time())


class Run(SQLModel, table=True):
    """The projection of a run, and its effective specification."""

    __tablename__ = "runs"
    __table_args__ = (
        _one_of(
            "status",
            *("pending", "submitted", "provisioning", "running"),
            *("terminating", "terminated", "failed", "done"),
        ),
        Index(
            "runs_living_name",
            "project_id",
            "name",
            unique=True,
            postgresql_where=text("ended_at IS NULL AND superseded_by IS NULL"),
        ),
        Index("runs_by_age", "project_id", text("submitted_at DESC")),
    )

    id: UUID = Field(primary_key=True)
    project_id: UUID = Field(sa_column_args=(ForeignKey("projects.id"),))
    name: str
    user_name: str = ""
    kind: str = "task"
    status: str = "submitted"
    reason: str | None = None
    message: str = ""
    spec: dict[str, Any] = Field(sa_type=JSONB)
    """``spec.effective.EffectiveRun``."""

    superseded_by: UUID | None = None
    """A later run of the same name found this one not ended: its workflow is gone, the sweep cleans up."""

    submitted_at: datetime = Field(**_time())
    recorded_at: datetime = Field(**_time())
    ended_at: datetime | None = Field(default=None, **_time())


class Claim(SQLModel, table=True):
    """A wish for all nodes of one replica, and what became of it."""

    __tablename__ = "claims"
    __table_args__ = (
        _one_of("status", "waiting", "granted", "ready", "refused", "failed", "released"),
        CheckConstraint("nodes > 0", name="some_nodes"),
        Index(
            "claims_queue",
            "project_id",
            text("priority DESC"),
            "queued_at",
            "id",
            postgresql_where=text("status = 'waiting'"),
        ),
        Index("claims_of_run", "run_id"),
    )

    id: UUID = Field(primary_key=True)
    project_id: UUID = Field(sa_column_args=(ForeignKey("projects.id"),))
    run_id: UUID = Field(sa_column_args=(ForeignKey("runs.id", ondelete="CASCADE"),))
    owner: str
    """Workflow id to tell."""

    replica: int
    submission: int
    nodes: int
    priority: int = 0
    requirements: dict[str, Any] = Field(sa_type=JSONB)
    shape: str
    """Hash of nodes and requirements: what does not fit one does not fit another of the same shape."""

    wait: bool = False
    idle_duration: float | None = 300.0
    queue_patience: float = 600.0
    keep: float = 0.0
    status: str = "waiting"
    message: str = ""
    tried: list[Any] = Field(default=[], sa_type=JSONB, sa_column_kwargs={"server_default": "[]"})
    queued_at: datetime = Field(**_time())
    not_before: datetime | None = Field(default=None, **_time())
    granted_at: datetime | None = Field(default=None, **_time())
    ended_at: datetime | None = Field(default=None, **_time())


class Holding(SQLModel, table=True):
    """A claim's node holds a block. The primary key is the invariant: one living holder a block."""

    __tablename__ = "holdings"
    __table_args__ = (Index("holdings_of_claim", "claim_id", "node"),)

    instance_id: UUID = Field(primary_key=True, sa_column_args=(ForeignKey("instances.id"),))
    block: int = Field(primary_key=True)
    claim_id: UUID = Field(sa_column_args=(ForeignKey("claims.id"),))
    node: int
    quarantined_at: datetime | None = Field(default=None, **_time())
    """Its job ended without its agent's word: nobody gets the block until the host is heard from and clean."""

    quarantined_job: UUID | None = None


class Job(SQLModel, table=True):
    """The projection of one submission of one job, and its log's offset of record."""

    __tablename__ = "jobs"
    __table_args__ = (
        _one_of(
            "status",
            *("submitted", "provisioning", "pulling", "running", "terminating"),
            *("terminated", "aborted", "failed", "done"),
        ),
        UniqueConstraint("run_id", "replica", "node", "submission", name="one_row_a_submission"),
        CheckConstraint("log_bytes >= 0", name="log"),
        Index("jobs_live", "run_id", postgresql_where=text("ended_at IS NULL")),
    )

    id: UUID = Field(primary_key=True)
    run_id: UUID = Field(sa_column_args=(ForeignKey("runs.id", ondelete="CASCADE"),))
    replica: int
    node: int
    submission: int
    claim_id: UUID
    instance_id: UUID
    status: str = "submitted"
    reason: str | None = None
    exit_status: int | None = None
    message: str = ""
    working_dir: str = ""
    username: str = ""
    ports: list[Any] = Field(default=[], sa_type=JSONB, sa_column_kwargs={"server_default": "[]"})
    """Pairs: port in the job, port on its host."""

    pull_done: int | None = Field(default=None, sa_type=BigInteger)
    pull_total: int | None = Field(default=None, sa_type=BigInteger)
    log_bytes: int = Field(default=0, sa_type=BigInteger)
    log_complete: bool = False
    heard: bool = False
    """Its run knows how it ended."""

    submitted_at: datetime = Field(**_time())
    started_at: datetime | None = Field(default=None, **_time())
    ended_at: datetime | None = Field(default=None, **_time())


class Watch(SQLModel, table=True):
    """Which worker process watches a job, with the task token by which its successor fails the watch at once."""

    __tablename__ = "watches"

    job_id: UUID = Field(primary_key=True, sa_column_args=(ForeignKey("jobs.id", ondelete="CASCADE"),))
    worker: str = Field(index=True)
    incarnation: UUID
    token: bytes = Field(sa_type=LargeBinary)


class Secret(SQLModel, table=True):
    """A value that its project's runs may refer to, encrypted with a key that the database does not have."""

    __tablename__ = "secrets"
    __table_args__ = (
        UniqueConstraint("project_id", "name", name="one_secret_a_name"),
        CheckConstraint("name ~ '^[A-Za-z0-9_-]{1,200}$'", name="is_a_name"),
    )

    id: UUID = Field(default_factory=uuid4, primary_key=True)
    project_id: UUID = Field(sa_column_args=(ForeignKey("projects.id"),))
    name: str
    box: bytes = Field(sa_type=LargeBinary)
    """Nonce and ciphertext (``activities.vault``)."""

    key: str
    """Which key opens it: the fingerprint of an installation's key."""

    created_at: datetime = Field(**_time(default=True))
    created_by: str = ""
    updated_at: datetime = Field(**_time(default=True))
    updated_by: str = ""


class Archive(SQLModel, table=True):
    """Code in the blob store, and when a run last used it."""

    __tablename__ = "archives"

    sha256: str = Field(primary_key=True)
    size: int = Field(sa_type=BigInteger)
    used_at: datetime = Field(**_time(default=True))


class Event(SQLModel, table=True):
    """What changed, when, and who or what caused it. Triggers write it (``migrations/versions/0004``): every change
    of a status, in the transaction that makes it. It refers to rows without holding on to them."""

    __tablename__ = "events"
    __table_args__ = (
        Index("events_by_age", "at"),
        Index("events_of_run", "run_id", postgresql_where=text("run_id IS NOT NULL")),
        Index("events_of_fleet", "fleet_id", postgresql_where=text("fleet_id IS NOT NULL")),
        Index("events_of_instance", "instance_id", postgresql_where=text("instance_id IS NOT NULL")),
        Index("events_of_refused", "name", postgresql_where=text("kind = 'run' AND status = 'refused'")),
        Index("events_of_secret", "subject_id", postgresql_where=text("kind = 'secret'")),
    )

    id: int = Field(sa_type=BigInteger, primary_key=True, sa_column_args=(Identity(always=True),))
    """A number and no UUID: those of one transaction are told in order."""

    at: datetime = Field(
        sa_type=DateTime(timezone=True), sa_column_kwargs={"server_default": text("clock_timestamp()")}
    )
    project_id: UUID | None = None
    """None: of something that no project has, as an instance that only its provider knows."""

    actor: str
    """``user NAME``, ``user``, ``workflow``, ``agent`` or ``sweep``."""

    kind: str
    """``run``, ``job``, ``claim``, ``instance``, ``fleet``, ``secret``, ``sweep``."""

    subject_id: UUID
    name: str = Field(default="", sa_column_kwargs={"server_default": ""})
    run_id: UUID | None = None
    fleet_id: UUID | None = None
    instance_id: UUID | None = None
    before: str | None = None
    """The status it had; None: it is new."""

    status: str | None = None
    reason: str | None = None
    words: str = Field(default="", sa_column_kwargs={"server_default": ""})
    """What the status and the reason do not say: ``model.happenings`` makes a sentence of all three."""

    data: dict[str, Any] = Field(default={}, sa_type=JSONB, sa_column_kwargs={"server_default": "{}"})
