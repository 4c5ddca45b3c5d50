"""The one base of every message."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Self

from pydantic import BaseModel, ConfigDict


class Message(BaseModel):
    """An immutable value that is stored in Temporal's history or in Postgres as JSON.

    Fields are only ever added, each with a default: an old history must load in a new worker, and a message
    of a newer worker in an old one. Times are aware and in UTC; durations are seconds as ``float``.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    def but(self, **changes: Any) -> Self:
        """A copy with these fields changed."""
        return self.model_copy(update=changes)


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
"""A time before everything, for "never"."""
