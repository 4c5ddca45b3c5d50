"""Many looks at once, of which one that fails stops no other."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable

from temporalio import activity

from perdure.model.messages import Finding


async def together(looks: Iterable[Awaitable[list[Finding]]]) -> list[Finding]:
    """What all of them found. A look that fails is logged, and the next pass looks again."""
    found: list[Finding] = []
    for outcome in await asyncio.gather(*looks, return_exceptions=True):
        if isinstance(outcome, Exception):
            activity.logger.error("the sweep could not look at something: %s", outcome, exc_info=outcome)
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            found += outcome
    return found
