"""Many looks at once, of which one that fails stops no other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TypeVar

from temporalio import activity

T = TypeVar("T")

AT_ONCE = 8
"""Fewer than the connections to Postgres, which people's runs need meanwhile."""


async def together(looks: Iterable[Awaitable[list[T]]], at_once: int = AT_ONCE) -> list[T]:
    """What all of them found. A look that fails is logged, and the next pass looks again."""
    gate = asyncio.Semaphore(at_once)

    async def one(look: Awaitable[list[T]]) -> list[T]:
        async with gate:
            return await look

    found: list[T] = []
    for outcome in await asyncio.gather(*(one(look) for look in looks), return_exceptions=True):
        if isinstance(outcome, Exception):
            activity.logger.error("the sweep could not look at something: %s", outcome, exc_info=outcome)
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            found += outcome
    return found
