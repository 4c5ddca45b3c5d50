"""The log of a container: every byte that was written, in order, once."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agents.docker_engine import Engine
from perdure.agents.docker_log import Entries, LogCopy
from perdure.agents.execution import Exit
from tests.agents.docker_tasks import Task, Tasks
from tests.agents.processes import eventually

MB = 1 << 20


def frame(time: bytes, payload: bytes, stream: int = 1) -> bytes:
    body = time + b" " + payload
    return bytes([stream, 0, 0, 0]) + len(body).to_bytes(4, "big") + body


@given(
    payloads=st.lists(st.binary(min_size=1, max_size=40), max_size=8),
    cuts=st.lists(st.integers(min_value=0, max_value=600), max_size=12),
)
def test_frames_cut_anywhere_give_the_same_bytes(payloads: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(frame(b"2026-11-30T07:00:00.%09dZ" % (n // 2), p) for n, p in enumerate(payloads))
    entries = Entries()
    places = [0, *sorted(cuts), len(stream)]
    output = b"".join(entries.feed(stream[a:b]) for a, b in itertools.pairwise(places))
    assert output == b"".join(payloads)
    assert entries.count == (0 if not payloads else 2 - len(payloads) % 2)


async def test_bytes_are_kept_whatever_they_are(tasks: Tasks) -> None:
    script = r"printf 'nul \000 high \377\376 cr 10%%\r20%%\r\n\n\n'; printf 'half \303'; sleep 0.2; printf '\244'"
    task = tasks.shell(script)
    assert await task.run() == Exit(0)
    assert task.log == b"nul \0 high \xff\xfe cr 10%\r20%\r\n\n\nhalf \xc3\xa4"


async def test_both_streams_are_in_the_log(tasks: Tasks) -> None:
    task = tasks.shell("echo out; sleep 0.2; echo err >&2; sleep 0.2; echo out again")
    await task.run()
    assert task.log == b"out\nerr\nout again\n"


async def test_a_line_is_there_while_the_job_runs(tasks: Tasks) -> None:
    task = tasks.shell("echo loss; sleep 60")
    await task.start()
    watching = asyncio.create_task(task.execution.wait())
    await eventually(lambda: task.log == b"loss\n")
    await task.execution.kill()
    assert await watching == Exit(137)


@pytest.mark.parametrize("length", [MB, MB - 1, MB + 1, 16 * 1024])
async def test_a_line_of_a_megabyte(tasks: Tasks, length: int) -> None:
    task = tasks.shell(f"head -c {length} /dev/zero | tr '\\0' x; usleep 200000; echo; echo; echo next")
    await task.run()
    assert task.log == b"x" * length + b"\n\nnext\n"


async def test_twenty_megabytes_of_anything(tasks: Tasks, tmp_path: Path) -> None:
    data = os.urandom(20 * MB)
    (tmp_path / "data").write_bytes(data)
    task = tasks.make("cat", "/in/data", instance_mounts=[{"instance_path": str(tmp_path), "path": "/in"}])
    await task.run()
    assert hashlib.sha256(task.log).digest() == hashlib.sha256(data).digest()


async def test_a_silent_job_has_an_empty_log(tasks: Tasks) -> None:
    task = tasks.make("true")
    await task.run()
    assert task.log == b""


async def test_a_copy_that_lacks_the_end_is_known_to(tasks: Tasks) -> None:
    task = tasks.shell(f"head -c {MB} /dev/zero | tr '\\0' x")
    await task.run()
    async with Engine(tasks.engine.address) as engine:
        whole = await _copied(engine, task)
        assert await whole.complete()
        for field, value in (("count", whole._last.count - 1), ("time", b"2026-11-30T07:00:00.000000000Z")):
            short = await _copied(engine, task)
            setattr(short._last, field, value)
            assert not await short.complete()


async def _copied(engine: Engine, task: Task) -> LogCopy:
    copy = LogCopy(engine, task.container["Id"], task.folder / "copy")
    await copy.copy(follow=False)
    return copy


async def test_what_the_file_has_is_not_written_again(tasks: Tasks) -> None:
    task = tasks.shell("seq 1 5000")
    await task.run()
    whole = task.log
    async with Engine(tasks.engine.address) as engine:
        for length in (0, 1, len(whole) // 2, len(whole) - 1, len(whole)):
            (task.folder / "copy").write_bytes(whole[:length])
            await _copied(engine, task)
            assert (task.folder / "copy").read_bytes() == whole
