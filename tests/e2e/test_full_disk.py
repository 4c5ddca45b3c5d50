"""When the disk of PERDURE_HOME is full, that is what everybody is told, until there is room again."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.support.disks import SmallDisk, small_disk
from tests.support.stack import Stack, fresh
from tests.support.waiting import WITHIN


@pytest.fixture
def small() -> Iterator[tuple[Stack, SmallDisk]]:
    with fresh() as stack, small_disk(stack.home.parent, 400) as disk:
        yield stack, disk
        stack.wipe()


def test_a_full_disk_is_named_by_status_commands_and_the_supervisor(small: tuple[Stack, SmallDisk]) -> None:
    stack, disk = small
    sentence = f"the disk of {stack.home} is full"
    journal = stack.home / "logs" / "supervisor.log"
    stack.up()
    assert sentence not in stack.ok("status")
    filler = disk.fill()
    assert sentence in stack.ok("status")
    refused = _until_refused(stack)
    assert sentence in " ".join(refused.split())
    assert "temporalio" not in refused
    filler.unlink()
    with (disk.folder / "filler").open("wb") as file:
        file.write(b"\0" * (disk.free - (32 << 20)))
    stack.until(lambda: sentence in (stack.described["full"] or ""), "the supervisor to notice")
    stack.until(lambda: sentence in journal.read_text(), "its word")
    filler.unlink()
    stack.until(lambda: stack.described["full"] is None, "the supervisor to notice")
    stack.until(lambda: stack.run("ps").returncode == 0, "commands to work again")
    assert sentence not in stack.ok("status")


def _until_refused(stack: Stack) -> str:
    """What stderr says when a command is refused at last: databases have some room of their own yet."""
    deadline = time.monotonic() + WITHIN
    path = stack.home.parent.parent / f"{stack.home.parent.name}.yml"
    path.write_text("type: task\ncommands: ['true']\n")
    try:
        while time.monotonic() < deadline:
            done = stack.run("apply", "-f", str(path), "-y", "-d")
            if done.returncode != 0:
                return done.stderr
    finally:
        path.unlink()
    raise AssertionError(f"never refused: {stack.logs()}")
