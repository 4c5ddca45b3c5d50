"""Patience and heartbeats: the two clocks of every step that waits for an agent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities.contact import Patience, heartbeats
from perdure.model.errors import AgentUnreachable


async def test_a_call_is_repeated_until_it_answers() -> None:
    calls = _failing(3)
    assert await Patience(10.0)(calls) == "answer"


async def test_the_limit_counts_from_the_last_answer() -> None:
    patience = Patience(0.4)
    for _ in range(3):
        await patience(_failing(1))
        await asyncio.sleep(0.2)
    begun = time.monotonic()
    with pytest.raises(AgentUnreachable, match="no answer"):
        await patience(_failing(1000))
    assert 0.15 < time.monotonic() - begun < 2


async def test_silence_is_handed_from_attempt_to_attempt() -> None:
    silent = Patience(60.0, silence=59.0)
    (handed, *_) = silent.details()
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, heartbeat_details=[handed])

    async def next_attempt() -> float:
        return Patience.resumed(60.0).silence

    assert 59.0 <= await environment.run(next_attempt) < 60.0


async def test_a_step_heartbeats_while_it_waits_and_no_longer() -> None:
    beats: list[Any] = []
    environment = ActivityEnvironment()
    environment.on_heartbeat = lambda *details: beats.append(details)

    async def step() -> None:
        async with heartbeats(0.05, lambda: ["where"]):
            await asyncio.sleep(0.3)

    await environment.run(step)
    beaten = len(beats)
    assert beaten >= 3
    assert beats[0] == ("where",)
    await asyncio.sleep(0.15)
    assert len(beats) == beaten


def _failing(times: int) -> Callable[[], Awaitable[str]]:
    left = times

    async def call() -> str:
        nonlocal left
        if left:
            left -= 1
            raise AgentUnreachable("no answer")
        return "answer"

    return call
