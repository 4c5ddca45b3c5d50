"""A full disk of the embedded stack is what is told, not what follows from it."""

from __future__ import annotations

import asyncio
import shutil
import time
from pathlib import Path

import pytest

from perdure.client.calls import promptly
from perdure.client.connection import Place, connect
from perdure.client.room import LEAST_FREE
from perdure.model.errors import ControlPlaneError


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place("127.0.0.1:1", "default", "a test", stack=tmp_path / "stack.json")


@pytest.fixture
def full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    usage = shutil.disk_usage(tmp_path)._replace(free=LEAST_FREE - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    return f"the disk of {tmp_path} is full: 63 MB left"


async def test_a_call_that_hangs_on_a_full_disk_is_given_up(place: Place, full: str):
    began = time.monotonic()
    with pytest.raises(ControlPlaneError) as caught:
        await promptly(place, asyncio.sleep(60))
    assert (caught.value.message, time.monotonic() - began < 50) == (full, True)


async def test_a_call_that_takes_long_while_there_is_room_is_waited_for(place: Place):
    assert await promptly(place, asyncio.sleep(1.2, "answer")) == "answer"


async def test_a_stack_that_cannot_be_reached_is_told_by_its_full_disk(place: Place, full: str):
    with pytest.raises(ControlPlaneError) as caught:
        await connect(place)
    assert caught.value.message == full


def test_another_temporals_disk_is_not_ours_to_know(full: str):
    fault = Place("far:7233", "default", "TEMPORAL_ADDRESS").fault("it is away", None)
    assert (fault.message, full in fault.message) == ("it is away", False)
