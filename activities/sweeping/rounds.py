"""Bounded work a pass: of many rows, each pass looks at some, and goes on where the last one stopped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

A_PASS = 200
"""Rows of one kind. Each costs Temporal one description (3 ms): a few percent of one core at a pass a minute."""


class Rounds:
    def __init__(self, a_pass: int = A_PASS) -> None:
        self._a_pass = a_pass
        self._next: dict[str, int] = {}

    def some(self, kind: str, rows: Sequence[T]) -> list[T]:
        """The next ones of these, in their order, starting again at the end."""
        if len(rows) <= self._a_pass:
            return list(rows)
        start = self._next.get(kind, 0) % len(rows)
        self._next[kind] = start + self._a_pass
        return [rows[(start + step) % len(rows)] for step in range(self._a_pass)]
