"""What changed, when, in words for people."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

_INSERT = text(
    "INSERT INTO events (at, kind, subject_id, text) VALUES (coalesce(:at, now()), :kind, :subject, :text)"
)


async def record(
    tx: AsyncConnection, kind: str, subject_id: UUID, words: str, *, at: datetime | None = None
) -> None:
    await tx.execute(_INSERT, {"at": at, "kind": kind, "subject": subject_id, "text": words})
