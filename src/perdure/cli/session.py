"""One command's connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from perdure.client.client import PerdureClient

T = TypeVar("T")


async def connect() -> PerdureClient:
    return await PerdureClient.connect()


def with_client(work: Callable[[PerdureClient], Awaitable[T]]) -> T:
    """Connect, do the work, and let the connection go."""

    async def session() -> T:
        return await work(await connect())

    return asyncio.run(session())
