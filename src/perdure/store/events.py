"""What changed, when, and who did it. Triggers write it (``migrations/versions/0004``); this reads it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from perdure.model.api import EventQuery, EventRow, EventTarget
from perdure.model.happenings import sentence
from perdure.model.ids import OwnName
from perdure.model.messages import Finding, Note

LONGEST = 2000
"""Characters of the mistakes of a configuration that are kept."""

_FOUND = text("""
    INSERT INTO events (project_id, actor, kind, subject_id, name, run_id, instance_id, reason, words)
    SELECT coalesce(i.project_id, r.project_id), 'sweep', 'sweep', it.id, coalesce(i.name, r.name, ''),
           r.id, i.id, :kind, :words
    FROM (SELECT CAST(:subject AS uuid) AS id) it
    LEFT JOIN instances i ON i.id = it.id
    LEFT JOIN runs r ON r.id = coalesce((SELECT j.run_id FROM jobs j WHERE j.id = it.id),
                                        (SELECT c.run_id FROM claims c WHERE c.id = it.id), it.id)
""")

_NOTED = text("""
    INSERT INTO events (at, project_id, actor, kind, subject_id, name, run_id, before, status, words, data)
    SELECT :at, r.project_id, 'workflow', 'run', r.id, r.name, r.id, r.status, r.status, :words,
           jsonb_build_object('note', CAST(:number AS int))
    FROM runs r WHERE r.id = :run AND NOT EXISTS (
        SELECT 1 FROM events e WHERE e.run_id = r.id AND e.data->'note' = to_jsonb(CAST(:number AS int)))
""")

_REFUSED = text("""
    INSERT INTO events (project_id, actor, kind, subject_id, name, run_id, status, words)
    SELECT p.id, :actor, 'run', :run, :name, :run, 'refused', :words FROM projects p
    WHERE p.name = :project AND NOT EXISTS (SELECT 1 FROM events WHERE run_id = :run)
""")

_LISTED = """
    SELECT * FROM (
        SELECT e.*, r.name AS run, f.name AS fleet, i.name AS instance
        FROM events e LEFT JOIN runs r ON r.id = e.run_id LEFT JOIN fleets f ON f.id = e.fleet_id
        LEFT JOIN instances i ON i.id = e.instance_id
        WHERE (e.project_id IS NULL OR e.project_id = (SELECT id FROM projects WHERE name = :project)) {more}
        ORDER BY e.at DESC, e.id DESC LIMIT :limit
    ) latest ORDER BY at, id
"""

_OF_PROJECT = "project_id = (SELECT id FROM projects WHERE name = :project) AND name = :name"
_REFUSED_OF_NAME = f"kind = 'run' AND status = 'refused' AND {_OF_PROJECT}"
_OF = {
    "run": (
        f"e.run_id IN (SELECT id FROM runs WHERE {_OF_PROJECT}"
        f" UNION ALL SELECT run_id FROM events WHERE {_REFUSED_OF_NAME})"
    ),
    "fleet": f"e.fleet_id IN (SELECT id FROM fleets WHERE {_OF_PROJECT})",
    "instance": f"e.instance_id IN (SELECT id FROM instances WHERE {_OF_PROJECT})",
    "secret": "e.kind = 'secret' AND e.name = :name",
}
"""All that ever had the name, as far as it is remembered."""


async def found(tx: AsyncConnection, finding: Finding) -> None:
    """Write what the sweep found, and where."""
    values = {"subject": UUID(finding.subject), "kind": finding.kind, "words": finding.message}
    await tx.execute(_FOUND, values)


async def noted(tx: AsyncConnection, run_id: UUID, note: Note) -> None:
    """Write what a run's workflow notes that is no change of a status. Doing it again changes nothing."""
    await tx.execute(_NOTED, {"run": run_id, "at": note.at, "words": note.text, "number": note.number})


async def refused(tx: AsyncConnection, own: OwnName, run_id: UUID, user: str, words: str) -> None:
    """Write that a configuration was refused: there is no run of which a row could tell. Once, and only of a
    project that there is."""
    values = {"project": own.project, "name": own.name, "run": run_id, "words": _storable(words)[:LONGEST]}
    await tx.execute(_REFUSED, values | {"actor": f"user {_storable(user)}".rstrip()})


def _storable(text: str) -> str:
    """Postgres takes neither NUL nor half a character, and a refused request may hold both."""
    return text.replace("\0", "").encode(errors="replace").decode()


async def listed(tx: AsyncConnection, query: EventQuery) -> list[EventRow]:
    """The latest, oldest first."""
    more: list[str] = []
    values: dict[str, Any] = {"project": query.project, "limit": query.limit}
    if query.since is not None:
        more.append("e.at >= :since")
        values["since"] = query.since
    if query.kind is not None:
        more.append(_OF[query.kind])
        values["name"] = query.name
        if query.kind in ("run", "fleet") and not query.within:
            more.append(f"e.kind = '{query.kind}'")
    statement = _LISTED.format(more="".join(f" AND {condition}" for condition in more))
    return [told(row) for row in await tx.execute(text(statement), values)]


def told(row: Row[Any]) -> EventRow:
    """A row with its sentence."""
    return EventRow(
        id=row.id,
        at=row.at,
        actor=row.actor,
        targets=tuple(_targets(row)),
        before=row.before,
        status=row.status,
        reason=row.reason,
        message=sentence(row.kind, row.before, row.status, row.reason, row.words, row.data),
        data=row.data,
    )


def _targets(row: Row[Any]) -> list[EventTarget]:
    """What changed, then what it is part of or on."""
    others = (
        ("run", row.run_id, row.run),
        ("instance", row.instance_id, row.instance),
        ("fleet", row.fleet_id, row.fleet),
    )
    first = EventTarget(kind=row.kind, id=row.subject_id, name=row.name)
    return [
        first,
        *(EventTarget(kind=kind, id=id, name=name or "") for kind, id, name in others if id and id != first.id),
    ]
