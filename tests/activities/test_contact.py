"""Patience and heartbeats: the two clocks of every step that waits for an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities import contact
from activities.contact import Patience, heartbeats
from perdure.model.errors import AgentUnreachable
from tests.support.waiting import eventually


async def test_a_call_is_repeated_until_it_answers() -> None:
    calls = _failing(3)
    assert await Patience(10.0)(calls) == "answer"


async def test_the_limit_counts_from_the_last_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contact, "FIRST_PAUSE", 0.0)
    monkeypatch.setattr(contact, "time", SimpleNamespace(monotonic=lambda: now))
    now, calls = 0.0, 0
    patience = Patience(10.0)

    async def silent(times: int) -> None:
        """Each try takes four seconds."""
        nonlocal now, calls
        now, calls = now + 4.0, calls + 1
        if calls <= times:
            raise AgentUnreachable("no answer")

    for _ in range(3):
        calls = 0
        await patience(lambda: silent(1))
    calls = 0
    with pytest.raises(AgentUnreachable, match="no answer"):
        await patience(lambda: silent(1000))
    assert calls == 3


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

    async def enough() -> bool:
        return len(beats) >= 3

    async def step() -> None:
        async with heartbeats(0.05, lambda: ["where"]):
            await eventually(enough)

    await environment.run(step)
    beaten = len(beats)
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
