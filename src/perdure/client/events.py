"""What changed in a project, from the outside: the latest, and what follows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

from perdure.client.calls import Calls
from perdure.model import api

LOOK_EVERY = 1.0
"""Seconds."""

OVERLAP = timedelta(seconds=10)
"""A transaction that began earlier may end later than another: so far back its events are looked for."""

MOST = 1000
"""Events of one look, which is all that a call gives."""


class Events:
    """``PerdureClient.events``."""

    def __init__(self, call: Calls):
        self._call = call

    async def list(self, query: api.EventQuery) -> tuple[api.EventRow, ...]:
        """The latest that ``query`` asks for, oldest first."""
        return (await self._call(api.LIST_EVENTS, query)).events

    async def follow(self, query: api.EventQuery) -> AsyncIterator[api.EventRow]:
        """Those there are, and then each as it comes. It has no end."""
        rows = await self.list(query)
        known: dict[int, api.EventRow] = {}
        while True:
            for row in rows:
                if row.id not in known:
                    known[row.id] = row
                    yield row
            if known:
                since = max(row.at for row in known.values()) - OVERLAP
                known = {id: row for id, row in known.items() if row.at >= since}
                query = query.but(since=max(since, query.since or since), limit=MOST)
            await asyncio.sleep(LOOK_EVERY)
            rows = await self.list(query)
