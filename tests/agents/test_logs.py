"""The log is what the job wrote, byte for byte, however it wrote it."""

from __future__ import annotations

import asyncio
import hashlib

import pytest

from tests.agents.processes import Host, start


async def test_any_bytes_come_as_they_were_written(here: Host) -> None:
    job = await start(here, r"printf 'a\000b\r\033[1mc\r\377\376'; printf '\n' >&2; printf 'no newline'")
    assert await job.log() == b"a\x00b\r\x1b[1mc\r\xff\xfe\nno newline"


@pytest.mark.parametrize("split", range(1, 8))
async def test_characters_split_anywhere_are_whole_again(here: Host, split: int) -> None:
    text = "é🚀é".encode()
    first, second = ("".join(f"\\{byte:03o}" for byte in part) for part in (text[:split], text[split:]))
    job = await start(here, f"printf '{first}'; sleep 0.2; printf '{second}'")
    pages, content = [], b""
    while True:
        page = await job.runner.logs(len(content), wait=5)
        content += page.content
        pages.append(page.content)
        if page.complete and len(content) == page.length:
            break
    assert content == text
    assert pages[0] == text[:split], "bytes are not held back until a character is whole"


async def test_a_job_that_opens_its_output_by_name_truncates_nothing(here: Host) -> None:
    job = await start(here, "echo one; echo two > /dev/stderr; echo three > /dev/stdout; echo four")
    assert await job.log() == b"one\ntwo\nthree\nfour\n"


async def test_lines_of_megabytes_and_every_offset(here: Host) -> None:
    job = await start(here, "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end")
    whole = b"x" * 3_000_000 + b"\nend\n"
    assert await job.log() == whole
    for offset in (0, 1, 1_048_575, 1_048_576, 2_999_999, len(whole)):
        page = await job.runner.logs(offset)
        assert page.content == whole[offset : offset + (1 << 20)]
        assert (page.length, page.complete) == (len(whole), True)


async def test_a_hundred_megabytes_arrive_whole(here: Host) -> None:
    job = await start(here, "seq 1 20000000 | head -c 100000000")
    digest, offset = hashlib.sha256(), 0
    while True:
        page = await job.runner.logs(offset, wait=5)
        digest.update(page.content)
        offset += len(page.content)
        if page.complete and offset == page.length:
            break
    expected = hashlib.sha256()
    left, chunk = 100_000_000, b""
    number = 1
    while left:
        chunk = b"".join(b"%d\n" % value for value in range(number, number + 100_000))[:left]
        number += 100_000
        left -= len(chunk)
        expected.update(chunk)
    assert (offset, digest.hexdigest()) == (100_000_000, expected.hexdigest())


async def test_a_reader_that_waits_is_woken_by_the_first_byte(here: Host) -> None:
    job = await start(here, "sleep 0.5; printf x; sleep 100")
    page = await asyncio.wait_for(job.runner.logs(0, wait=20), 19)
    assert (page.content, page.complete) == (b"x", False)
    quiet = await job.runner.logs(1, wait=0.2)
    assert (quiet.content, quiet.length, quiet.complete, quiet.state) == (b"", 1, False, "running")


async def test_many_readers_of_one_log_get_the_same(here: Host) -> None:
    job = await start(here, "for i in 1 2 3 4 5; do echo $i; sleep 0.05; done")
    logs = await asyncio.gather(*(job.log() for _ in range(5)))
    assert set(logs) == {b"1\n2\n3\n4\n5\n"}


async def test_output_of_the_last_moment_of_every_process_is_in_a_complete_log(here: Host) -> None:
    job = await start(here, "(for i in $(seq 2000); do echo $i; done) & (seq 2000) & wait; echo over")
    await job.ended()
    page = await job.runner.logs(0)
    assert page.complete
    assert page.content.endswith(b"over\n")
    numbers = b"".join(b"%d\n" % number for number in range(1, 2001))
    assert sorted(page.content) == sorted(numbers * 2 + b"over\n"), "every byte, the writers' in any order"
