"""Following events: each once, also when transactions end in another order than they began."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import UUID

import pytest

from perdure.client import events as module
from perdure.client.calls import Calls
from perdure.client.events import Events
from perdure.model import api

AT = datetime(2026, 11, 30, tzinfo=UTC)


def row(id: int, seconds: float) -> api.EventRow:
    run = api.EventTarget(kind="run", id=UUID(int=1))
    return api.EventRow(id=id, at=AT + timedelta(seconds=seconds), actor="workflow", targets=(run,))


class Log:
    """What is committed at each look, and what a worker answers then."""

    def __init__(self, *looks: list[api.EventRow]):
        self._looks = list(looks)
        self._rows: list[api.EventRow] = []
        self.asked: list[api.EventQuery] = []

    async def __call__(self, call: Any, query: api.EventQuery) -> api.EventRows:
        self.asked.append(query)
        self._rows += self._looks.pop(0)
        found = [it for it in self._rows if query.since is None or it.at >= query.since]
        return api.EventRows(events=tuple(sorted(found, key=lambda it: it.at)[-query.limit :]))


async def test_each_event_comes_once_and_late_ones_too(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "LOOK_EVERY", 0.0)
    log = Log([row(1, 0), row(3, 2)], [row(2, 1)], [], [row(4, 60)], [row(5, 55)])
    found: list[int] = []
    async for it in Events(cast(Calls, log)).follow(api.EventQuery(project="main", limit=100)):
        found.append(it.id)
        if len(found) == 5:
            break
    assert found == [1, 3, 2, 4, 5]
    assert log.asked[-1].since == AT + timedelta(seconds=50)
    assert log.asked[-1].limit == module.MOST
