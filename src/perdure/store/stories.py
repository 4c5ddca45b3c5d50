"""What the story of a run is told from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from perdure.core.story import Claim, Facts, Instance, Job, Place
from perdure.model.api import StoryQuery
from perdure.model.statuses import ClaimStatus, InstanceReason, JobReason, JobStatus, RunReason, RunStatus
from perdure.spec.effective import EffectiveRun
from perdure.store import parsing

_RUN = text("""
    SELECT r.*, now() AS now FROM runs r JOIN projects p ON p.id = r.project_id
    WHERE p.name = :project AND (r.id = CAST(:id AS uuid) OR CAST(:id AS uuid) IS NULL AND r.name = :name)
    ORDER BY (r.ended_at IS NULL AND r.superseded_by IS NULL) DESC, r.submitted_at DESC LIMIT 1
""")

_CLAIMS = text("""
    SELECT c.*,
           (SELECT count(*) FROM claims w
            WHERE c.status = 'waiting' AND w.status = 'waiting' AND w.project_id = c.project_id
              AND (-w.priority, w.queued_at, w.id) < (-c.priority, c.queued_at, c.id)) AS ahead
    FROM claims c WHERE c.run_id = :run ORDER BY c.queued_at, c.replica
""")

_JOBS = text("""
    SELECT j.*, i.name AS instance FROM jobs j LEFT JOIN instances i ON i.id = j.instance_id
    WHERE j.run_id = :run ORDER BY j.submission, j.replica, j.node
""")

_EVENTS = text("""
    SELECT kind, subject_id, status, at, data FROM events
    WHERE run_id = :run AND kind IN ('run', 'job', 'claim') ORDER BY at, id
""")

_INSTANCES = text("SELECT id, name, failures, reason, message FROM instances WHERE id = ANY(:ids)")

Moves = Mapping[tuple[str, UUID], Sequence[Row[Any]]]
"""The events of each thing, oldest first."""


async def facts(tx: AsyncConnection, query: StoryQuery) -> tuple[Facts, datetime] | None:
    """Of a run, and the database's time; None: there is no such run."""
    values = {"project": query.project, "id": query.run_id, "name": query.name}
    run = (await tx.execute(_RUN, values)).one_or_none()
    if run is None:
        return None
    moves: dict[tuple[str, UUID], list[Row[Any]]] = {}
    for row in await tx.execute(_EVENTS, {"run": run.id}):
        moves.setdefault((row.kind, row.subject_id), []).append(row)
    claims = tuple(_claim(row, moves) for row in await tx.execute(_CLAIMS, {"run": run.id}))
    jobs = tuple(_job(row, moves) for row in await tx.execute(_JOBS, {"run": run.id}))
    effective = EffectiveRun.model_validate(run.spec)
    found = Facts(
        policy=effective.policy,
        status=RunStatus(run.status),
        reason=RunReason(run.reason) if run.reason else None,
        message=run.message,
        ended_at=run.ended_at,
        ending_at=_first(moves.get(("run", run.id), ())).get(RunStatus.TERMINATING.value),
        superseded=run.superseded_by is not None,
        max_duration=effective.max_duration,
        claims=claims,
        jobs=jobs,
        instances=await _instances(tx, {place.instance_id for claim in claims for place in claim.places}),
    )
    return found, run.now


async def _instances(tx: AsyncConnection, ids: Iterable[UUID]) -> dict[UUID, Instance]:
    return {
        row.id: Instance(
            name=row.name,
            failures=parsing.FAILURES.validate_python(row.failures),
            reason=InstanceReason(row.reason) if row.reason else None,
            message=row.message,
        )
        for row in await tx.execute(_INSTANCES, {"ids": list(ids)})
    }


def _claim(row: Row[Any], moves: Moves) -> Claim:
    moved = moves.get(("claim", row.id), ())
    granted = next((it.data["instances"] for it in moved if it.data.get("instances")), ())
    return Claim(
        replica=row.replica,
        submission=row.submission,
        nodes=row.nodes,
        status=ClaimStatus(row.status),
        queued_at=row.queued_at,
        message=row.message,
        tried=parsing.FAILURES.validate_python(row.tried),
        moved={ClaimStatus(status): at for status, at in _first(moved).items()},
        places=tuple(Place(UUID(it["id"]), it["name"], it["new"]) for it in granted),
        ahead=row.ahead,
    )


def _job(row: Row[Any], moves: Moves) -> Job:
    return Job(
        replica=row.replica,
        node=row.node,
        submission=row.submission,
        status=JobStatus(row.status),
        submitted_at=row.submitted_at,
        instance=row.instance or "an instance",
        reason=JobReason(row.reason) if row.reason else None,
        exit_status=row.exit_status,
        message=row.message,
        started_at=row.started_at,
        ended_at=row.ended_at,
        moved={JobStatus(status): at for status, at in _first(moves.get(("job", row.id), ())).items()},
    )


def _first(rows: Iterable[Row[Any]]) -> dict[str, datetime]:
    """When each status was first reached."""
    found: dict[str, datetime] = {}
    for row in rows:
        found.setdefault(row.status, row.at)
    return found
