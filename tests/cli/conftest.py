"""The program in this process, and an installation that answers as a test wants."""

from __future__ import annotations

import io
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from nacl.public import PrivateKey

from activities.seal import public_key
from perdure.blobs.folder import FolderBlobs
from perdure.cli import session, terminal
from perdure.cli.program import run
from perdure.client.logs import LogPiece
from perdure.model import api
from perdure.model.errors import Conflict, NotFound
from perdure.model.messages import RunRequest
from perdure.model.origins import EffectiveValue
from perdure.model.resources import Offer, Resources
from perdure.model.secrets import check_secret_value

NOW = datetime.now(UTC)
OFFER = api.PlannedOffer(
    fleet="local",
    offer=Offer(
        backend="local",
        region="",
        instance_type="local",
        resources=Resources(cpus=2, memory_mib=4096, disk_mib=102400),
        price=0.25,
    ),
)
PLAN = api.Plan(
    name="x", effective=(EffectiveValue(label="resources", value="cpu=2"),), offers=(OFFER,), total_offers=1
)


@dataclass
class FakeSecrets:
    """``PerdureClient.secrets``, of one project."""

    values: dict[str, str] = field(default_factory=dict)

    async def set(self, project: str, name: str, value: str, user: str = "") -> api.SecretRow:
        check_secret_value(name, value)
        new = name not in self.values
        self.values[name] = value
        return a_secret(name, changed=not new)

    async def get(self, project: str, name: str) -> str:
        await self.find(project, name)
        return self.values[name]

    async def list(self, project: str) -> tuple[api.SecretRow, ...]:
        return tuple(a_secret(name) for name in self.values)

    async def find(self, project: str, name: str) -> api.SecretRow:
        if name not in self.values:
            raise NotFound(f"there is no secret {name} in project {project}")
        return a_secret(name)

    async def delete(self, project: str, name: str, user: str = "") -> None:
        del self.values[name]


def a_secret(name: str, changed: bool = True) -> api.SecretRow:
    created = NOW - timedelta(days=3)
    updated = NOW - timedelta(days=2) if changed else created
    return api.SecretRow(name=name, created_at=created, created_by="ann", updated_at=updated, updated_by="bob")


@dataclass
class FakeEvents:
    """``PerdureClient.events``: these, and what was asked for."""

    rows: tuple[api.EventRow, ...] = ()
    asked: list[api.EventQuery] = field(default_factory=list)

    async def list(self, query: api.EventQuery) -> tuple[api.EventRow, ...]:
        self.asked.append(query)
        return self.rows

    async def follow(self, query: api.EventQuery) -> AsyncIterator[api.EventRow]:
        for row in await self.list(query):
            yield row


@dataclass
class FakeSchedules:
    """``PerdureClient.schedules``: what was done, or why nothing can be."""

    did: list[str] = field(default_factory=list)
    refusal: str = ""

    async def trigger(self, project: str, name: str, by: str) -> None:
        self._do(f"trigger {name}")

    async def pause(self, project: str, name: str, by: str) -> None:
        self._do(f"pause {name}")

    async def resume(self, project: str, name: str, by: str) -> None:
        self._do(f"resume {name}")

    async def stop_occurrence(self, project: str, name: str, by: str, *, abort: bool = False) -> None:
        self._do(f"{'abort' if abort else 'stop'} {name}")

    def _do(self, what: str) -> None:
        if self.refusal:
            raise Conflict(self.refusal)
        self.did.append(what)


@dataclass
class FakeClient:
    """An installation with one run at most."""

    folder: Path
    key: PrivateKey = field(default_factory=PrivateKey.generate)
    installation: UUID = field(default_factory=uuid4)
    plan_answer: api.Plan = PLAN
    run: api.RunRow | None = None
    pieces: list[LogPiece] = field(default_factory=list)
    planned: list[api.PlanRequest] = field(default_factory=list)
    applied: list[RunRequest] = field(default_factory=list)
    stopped: list[tuple[str, bool]] = field(default_factory=list)
    checks: tuple[api.Check, ...] = ()
    fleet_rows: tuple[api.FleetRow, ...] = ()
    made_fleets: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    code_limit: int = 0
    secrets: FakeSecrets = field(default_factory=FakeSecrets)
    events: FakeEvents = field(default_factory=FakeEvents)
    schedules: FakeSchedules = field(default_factory=FakeSchedules)
    told: api.Story | None = None
    asked: list[dict[str, Any]] = field(default_factory=list)
    """For offers."""

    def be_patient(self) -> None:
        """It is never away."""

    async def hello(self) -> api.Hello:
        store = FolderBlobs(self.folder, self.installation)
        return api.Hello(
            version="1",
            installation=self.installation,
            public_key=public_key(bytes(self.key)),
            blobs=store.url,
            code_limit=self.code_limit,
        )

    async def plan(self, request: api.PlanRequest) -> api.Plan:
        self.planned.append(request)
        return self.plan_answer.but(name=request.configuration["name"])

    async def apply(self, project: str, name: str, request: RunRequest) -> UUID:
        self.applied.append(request)
        self.run = self.run or a_run(name)
        return self.run.run_id

    async def registered(self, project: str, name: str, run_id: UUID) -> api.RunRow:
        return await self.get_run(project, name)

    async def get_run(self, project: str, name: str | None = None, run_id: UUID | None = None) -> api.RunRow:
        if self.run is None:
            raise NotFound(f"there is no run {name} in project {project}", hint="`perdure ps -a` lists them all")
        return self.run

    async def wait(self, project: str, name: str, run_id: UUID) -> api.RunRow:
        return await self.get_run(project, name)

    async def list_runs(self, project: str, *, all: bool = False, limit: int = 100) -> tuple[api.RunRow, ...]:
        live = self.run is not None and self.run.ended_at is None
        return (self.run,) if self.run is not None and (live or all) else ()

    async def stop(self, project: str, name: str, *, abort: bool = False, by: str | None = None) -> bool:
        self.stopped.append((name, abort))
        return self.run is not None and self.run.ended_at is None

    async def follow_logs(self, project: str, name: str, **_: Any) -> AsyncIterator[LogPiece]:
        for piece in self.pieces:
            yield piece

    async def story(self, project: str, name: str) -> api.Story:
        if self.told is None:
            raise NotFound(f"there is no run {name} in project {project}", hint="`perdure ps -a` lists them all")
        return self.told

    async def doctor(self) -> tuple[api.Check, ...]:
        return self.checks

    async def fleets(self, project: str) -> tuple[api.FleetRow, ...]:
        return self.fleet_rows

    async def offers(self, project: str, requirements: Any = None, *, limit: int = 50) -> api.OfferRows:
        self.asked.append(requirements)
        return api.OfferRows(offers=(OFFER,), total=1)

    async def apply_fleet(self, project: str, name: str, configuration: Any, user: str = "") -> bool:
        self.made_fleets.append((name, dict(configuration)))
        return all(fleet.name != name for fleet in self.fleet_rows)

    async def fleet_recorded(self, project: str, name: str, configuration: Any) -> None:
        """At once."""

    async def delete_fleet(self, project: str, name: str) -> None:
        self.fleet_rows = tuple(fleet for fleet in self.fleet_rows if fleet.name != name)


def a_job(**more: Any) -> api.JobRow:
    values: dict[str, Any] = {"replica": 0, "node": 0, "submission": 0, "status": "done", "instance": "local-0"}
    return api.JobRow(
        **({"job_id": uuid4(), "backend": "local", "submitted_at": NOW, "started_at": NOW} | values | more)
    )


def a_run(name: str = "x", status: str = "done", jobs: tuple[api.JobRow, ...] = (), **more: Any) -> api.RunRow:
    ended = NOW + timedelta(seconds=3) if status in ("done", "failed", "terminated") else None
    return api.RunRow(
        run_id=uuid4(),
        project="main",
        name=name,
        status=status,
        submitted_at=NOW,
        ended_at=ended,
        jobs=jobs or (a_job(status=status, exit_status=0 if status == "done" else None),),
        **more,
    )


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeClient:
    client = FakeClient(tmp_path / "blobs")

    async def connect() -> FakeClient:
        return client

    monkeypatch.setattr(session, "connect", connect)
    return client


@dataclass
class Ended:
    """What a command did."""

    code: int
    out: str
    err: str


Program = Callable[..., Ended]


@pytest.fixture
def perdure(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Program:
    """Runs one command in an empty folder: ``perdure("apply", "-y", input="…")``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PERDURE_HOME", str(tmp_path / "home"))
    for name in ("PERDURE_PROJECT", "PERDURE_DEBUG", "TEMPORAL_ADDRESS", "TEMPORAL_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(tmp_path / "temporal.toml"))

    def program(*arguments: str, input: str | None = None) -> Ended:
        terminal.out.cache_clear()
        terminal.say.cache_clear()
        stdin = io.TextIOWrapper(io.BytesIO((input or "").encode(errors="surrogateescape")))
        monkeypatch.setattr(sys, "stdin", stdin)
        capfd.readouterr()
        code = run(list(arguments))
        sys.stdout.flush()
        said = capfd.readouterr()
        return Ended(code, said.out, said.err)

    return program


@pytest.fixture
def somebody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person at a terminal answers questions (from ``input``)."""
    monkeypatch.setattr(terminal, "interactive", lambda: True)
