"""Secrets: encrypted values under names, a project's own. The key is never in here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from perdure.model.api import SecretRow
from perdure.store import projects


@dataclass(frozen=True)
class Box:
    """A value as the database has it."""

    content: bytes
    """Nonce and ciphertext."""

    key: str
    """The fingerprint of the key that opens it."""


async def put(tx: AsyncConnection, project: str, name: str, box: Box, user: str) -> SecretRow:
    """Keep a value, in place of the one before. Only a new secret's two times are the same."""
    query = text("""
        INSERT INTO secrets (id, project_id, name, box, key, created_by, updated_by)
        VALUES (:id, :project, :name, :box, :key, :user, :user)
        ON CONFLICT (project_id, name) DO UPDATE
        SET box = EXCLUDED.box, key = EXCLUDED.key, updated_at = now(), updated_by = EXCLUDED.updated_by
        RETURNING *
    """)
    values = {"id": uuid4(), "project": await projects.ensure(tx, project), "name": name}
    values |= {"box": box.content, "key": box.key, "user": user}
    row = (await tx.execute(query, values)).one()
    return _told(row)


async def boxes(tx: AsyncConnection, project: str, names: Iterable[str]) -> dict[str, Box]:
    """Those of these names that there are."""
    query = text(
        "SELECT s.name, s.box, s.key FROM secrets s JOIN projects p ON p.id = s.project_id "
        "WHERE p.name = :project AND s.name = ANY(:names)"
    )
    rows = await tx.execute(query, {"project": project, "names": list(names)})
    return {row.name: Box(row.box, row.key) for row in rows}


async def every_box(tx: AsyncConnection) -> list[tuple[str, str, Box]]:
    """(project, name, value) of all that the installation keeps."""
    query = text(
        "SELECT p.name AS project, s.name, s.box, s.key FROM secrets s JOIN projects p ON p.id = s.project_id"
    )
    return [(row.project, row.name, Box(row.box, row.key)) for row in await tx.execute(query)]


async def listed(tx: AsyncConnection, project: str) -> list[SecretRow]:
    """All of a project, by name, without their values."""
    query = text("""
        SELECT s.name, s.created_at, s.created_by, s.updated_at, s.updated_by
        FROM secrets s JOIN projects p ON p.id = s.project_id WHERE p.name = :project ORDER BY s.name
    """)
    return [_told(row) for row in await tx.execute(query, {"project": project})]


async def names(tx: AsyncConnection, project: str) -> set[str]:
    """What a run of the project may refer to."""
    return {row.name for row in await listed(tx, project)}


async def delete(tx: AsyncConnection, project: str, name: str) -> bool:
    """False: there is none (any more)."""
    query = text("""
        DELETE FROM secrets s USING projects p
        WHERE p.id = s.project_id AND p.name = :project AND s.name = :name RETURNING s.id
    """)
    return (await tx.execute(query, {"project": project, "name": name})).one_or_none() is not None


def _told(row: Any) -> SecretRow:
    return SecretRow(
        name=row.name,
        created_at=row.created_at,
        created_by=row.created_by,
        updated_at=row.updated_at,
        updated_by=row.updated_by,
    )
