"""A job's output leaves room on the disk for whatever else lives there."""

from __future__ import annotations

from perdure.agents.process.keeper import RESERVE
from tests.agents.processes import Host, Started, eventually, start
from tests.support.disks import small_disk

MB = 1 << 20


async def test_output_waits_when_the_disk_is_down_to_its_reserve_and_is_whole_when_there_is_room(
    here: Host,
) -> None:
    folder = here.folder / "tasks"
    folder.mkdir(exist_ok=True)
    with small_disk(folder, RESERVE // MB + 8) as disk:
        job = await start(here, "head -c 30000000 /dev/zero; echo end")
        await eventually(lambda: disk.free < RESERVE)
        assert (await job.runner.state(seen="running", wait=1)).state == "running"
        assert disk.free > RESERVE - 3 * MB
        disk.resize(RESERVE // MB + 100)
        assert (await job.ended()).exit_status == 0
        assert await job.log() == b"\0" * 30_000_000 + b"end\n"
        await _remove(job)


async def test_what_a_job_that_ended_has_printed_may_have_of_the_reserve(here: Host) -> None:
    folder = here.folder / "tasks"
    folder.mkdir(exist_ok=True)
    with small_disk(folder, RESERVE // MB - 8):
        job = await start(here, "echo few words")
        await job.ended()
        assert await job.log() == b"few words\n"
        await _remove(job)


async def _remove(job: Started) -> None:
    await job.shim.terminate(job.id)
    await job.shim.remove(job.id)
