"""One command's connection."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import typer

from perdure.client.client import PerdureClient

T = TypeVar("T")


async def connect() -> PerdureClient:
    return await PerdureClient.connect()


def with_client(work: Callable[[PerdureClient], Awaitable[T]]) -> T:
    """Connect, do the work, and let the connection go.

    Whoever reads the output may stop before its end (``perdure logs x | head -1``): that is well.
    """

    async def session() -> T:
        return await work(await connect())

    try:
        return asyncio.run(session())
    except BrokenPipeError:
        raise typer.Exit from None
