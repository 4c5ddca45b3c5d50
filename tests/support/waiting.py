"""Waiting for a condition, as every test does it: never for a time.

The bound matters only when a test fails: it is far beyond what a loaded machine needs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

WITHIN = 120.0
"""Seconds."""


def until(
    true: Callable[[], object], what: str = "it", *, within: float = WITHIN, also: Callable[[], str] = str
) -> None:
    """Poll.

    Args:
        what: to come true, for the message.
        also: what else is to be said of a failure.
    """
    deadline = time.monotonic() + within
    while not true():
        assert time.monotonic() < deadline, f"waited {within:.0f} s for {what}\n{also()}"
        time.sleep(0.02)


async def eventually(true: Callable[[], Awaitable[object]], what: str = "it", *, within: float = WITHIN) -> None:
    """The same for what has to be awaited."""
    deadline = time.monotonic() + within
    while not await true():
        assert time.monotonic() < deadline, f"waited {within:.0f} s for {what}"
        await asyncio.sleep(0.02)
