"""What lists show. They read rows only: no workflow is asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from perdure.model.api import FleetRow, InstanceRow, JobRow, RunQuery, RunRow
from perdure.model.resources import Offer, OfferFailure

_RUNS = """
    SELECT r.id, p.name AS project, r.name, r.user_name, r.kind, r.status, r.reason, r.message, r.submitted_at,
           r.ended_at, CAST(r.spec #>> '{{policy,replicas}}' AS integer) AS replicas,
           CAST(r.spec #>> '{{policy,nodes}}' AS integer) AS nodes,
           CASE WHEN :one THEN r.spec -> 'configuration' END AS configuration
    FROM runs r JOIN projects p ON p.id = r.project_id
    WHERE {where}
    ORDER BY (r.ended_at IS NULL AND r.superseded_by IS NULL) DESC, r.submitted_at DESC, r.id
    LIMIT :limit
"""

_JOBS = text("""
    SELECT j.*, i.name AS instance, i.backend, i.address, i.offer, i.offers,
           j.submission = max(j.submission) OVER (PARTITION BY j.run_id, j.replica, j.node) AS latest
    FROM jobs j LEFT JOIN instances i ON i.id = j.instance_id
    WHERE j.run_id = ANY(:runs)
    ORDER BY j.replica, j.node, j.submission
""")

_TRIED = text("""
    SELECT tried FROM (
        SELECT DISTINCT ON (replica) replica, tried, granted_at FROM claims WHERE run_id = :run
        ORDER BY replica, queued_at DESC, id
    ) last WHERE granted_at IS NULL ORDER BY replica
""")
"""Of each replica whose last claim was never granted."""

_FLEETS = text("""
    SELECT f.id, p.name AS project, f.name, f.status, f.nodes_min, f.nodes_max, f.placement, f.created_at,
           f.configuration
    FROM fleets f JOIN projects p ON p.id = f.project_id
    WHERE p.name = :project AND f.status <> 'terminated' ORDER BY f.name
""")

_INSTANCES = text("""
    SELECT * FROM instances WHERE fleet_id = ANY(:fleets) AND status <> 'terminated' ORDER BY fleet_id, num
""")


async def list_runs(tx: AsyncConnection, query: RunQuery) -> list[RunRow]:
    """Runs of a project, those that live first, then the newest.

    One run, asked for by id or name (the living one, or the newest), comes with its configuration and every
    submission of its jobs; lists show the latest submission of each.
    """
    one = query.name is not None or query.run_id is not None
    where, values = ["p.name = :project"], {"project": query.project, "limit": query.limit, "one": one}
    if query.run_id is not None:
        where, values["run"] = ["r.id = :run"], query.run_id
    elif query.name is not None:
        where, values["name"] = [*where, "r.name = :name"], query.name
    elif not query.all:
        where.append("r.ended_at IS NULL AND r.superseded_by IS NULL")
    found = (await tx.execute(text(_RUNS.format(where=" AND ".join(where))), values)).all()
    jobs: dict[UUID, list[JobRow]] = {row.id: [] for row in found}
    for row in await tx.execute(_JOBS, {"runs": list(jobs)}):
        if one or row.latest:
            jobs[row.run_id].append(_job(row))
    tried = await _failures(tx, found[0].id) if one and found else ()
    return [_run(row, jobs[row.id], tried) for row in found]


async def list_fleets(tx: AsyncConnection, project: str) -> list[FleetRow]:
    """Fleets of a project with their instances, those that are gone left out."""
    found = (await tx.execute(_FLEETS, {"project": project})).all()
    instances: dict[UUID, list[InstanceRow]] = {row.id: [] for row in found}
    for row in await tx.execute(_INSTANCES, {"fleets": list(instances)}):
        instances[row.fleet_id].append(_instance(row))
    return [_fleet(row, instances[row.id]) for row in found]


async def _failures(tx: AsyncConnection, run_id: UUID) -> tuple[OfferFailure, ...]:
    """Why a run waits for capacity, or found none."""
    found = (await tx.execute(_TRIED, {"run": run_id})).scalars()
    return tuple(OfferFailure.model_validate(it) for tried in found for it in tried)


def _run(row: Row[Any], jobs: Iterable[JobRow], tried: tuple[OfferFailure, ...]) -> RunRow:
    return RunRow(
        run_id=row.id,
        project=row.project,
        name=row.name,
        user=row.user_name,
        kind=row.kind,
        status=row.status,
        reason=row.reason,
        message=row.message,
        submitted_at=row.submitted_at,
        ended_at=row.ended_at,
        replicas=row.replicas,
        nodes=row.nodes,
        jobs=tuple(jobs),
        configuration=row.configuration,
        failures=tried,
    )


def _job(row: Row[Any]) -> JobRow:
    offer = _offer(row)
    return JobRow(
        job_id=row.id,
        replica=row.replica,
        node=row.node,
        submission=row.submission,
        status=row.status,
        reason=row.reason,
        exit_status=row.exit_status,
        message=row.message,
        instance=row.instance,
        backend=row.backend or None,
        address=row.address,
        price=offer.price if offer else None,
        resources=offer.resources.words() if offer else None,
        pull=None if row.pull_total is None else (row.pull_done, row.pull_total),
        ports=tuple((inside, outside) for inside, outside in row.ports),
        log_bytes=row.log_bytes,
        log_complete=row.log_complete,
        submitted_at=row.submitted_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
    )


def _fleet(row: Row[Any], instances: Iterable[InstanceRow]) -> FleetRow:
    most = "" if row.nodes_max is None else row.nodes_max
    nodes = str(row.nodes_min) if row.nodes_min == row.nodes_max else f"{row.nodes_min}..{most}"
    return FleetRow(
        fleet_id=row.id,
        project=row.project,
        name=row.name,
        status=row.status,
        nodes=nodes,
        placement=row.placement,
        configuration=row.configuration,
        created_at=row.created_at,
        instances=tuple(instances),
    )


def _instance(row: Row[Any]) -> InstanceRow:
    offer = _offer(row)
    return InstanceRow(
        instance_id=row.id,
        name=row.name,
        num=row.num,
        status=row.status,
        backend=row.backend,
        region=row.region,
        resources=offer.resources.words() if offer else "",
        price=offer.price if offer else 0.0,
        address=row.address,
        busy_blocks=row.busy_blocks,
        total_blocks=row.total_blocks,
        reason=row.reason,
        message=row.message,
        created_at=row.created_at,
    )


def _offer(row: Row[Any]) -> Offer | None:
    """The one it was made of, or the first that will be tried."""
    found = row.offer or (row.offers[0] if row.offers else None)
    return None if found is None else Offer.model_validate(found)
