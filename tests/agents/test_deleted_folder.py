"""A shim whose folder is deleted under it ends what it runs, and itself."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from perdure.agents import remains
from tests.agents.processes import Host, eventually, start


@pytest.fixture(params=["sandbox", "none"])
async def doomed(request: pytest.FixtureRequest) -> AsyncIterator[Host]:
    """A host that a test takes the folder from: only no process may be left at the end."""
    base = Path(tempfile.mkdtemp(prefix="p", dir="/tmp"))
    base.chmod(0o755)
    one = Host(base)
    one.environment = {"PERDURE_SANDBOX": "none"} if request.param == "none" else {}
    one.start_shim()
    await one.shim()
    yield one
    await one.agents.close()
    assert one.process is not None
    if one.process.poll() is None:
        one.kill_shim()
    shutil.rmtree(base, ignore_errors=True)


async def test_a_deleted_folder_ends_its_tasks_and_its_shim(doomed: Host) -> None:
    jobs = [await start(doomed, "trap '' TERM; echo ready; setsid sleep 1000 & sleep 1000") for _ in range(2)]
    for job in jobs:
        await job.printed(b"ready")
    bystander = await asyncio.create_subprocess_exec("sleep", "100", env={"PERDURE_JOB_ID": str(jobs[0].id)})
    shutil.rmtree(doomed.folder)
    assert doomed.process is not None
    assert await asyncio.to_thread(doomed.process.wait, 20) == 0
    await eventually(lambda: not doomed.left_over())
    assert not doomed.work.exists()
    assert bystander.returncode is None
    bystander.terminate()
    await bystander.wait()


async def test_a_folder_made_anew_in_its_place_is_not_its_own(doomed: Host) -> None:
    description = (doomed.folder / "instance.json").read_bytes()
    aside = doomed.folder.rename(doomed.folder.with_name("aside"))  # so that its inode is not used again
    doomed.folder.mkdir()
    (doomed.folder / "instance.json").write_bytes(description)
    assert doomed.process is not None
    assert await asyncio.to_thread(doomed.process.wait, 20) == 0
    assert aside.exists()


async def test_what_is_left_of_a_killed_shim_without_a_folder_is_found_and_ended(doomed: Host) -> None:
    job = await start(doomed, "echo ready; setsid sleep 1000 & sleep 1000")
    await job.printed(b"ready")
    assert doomed.process is not None
    ours = doomed.folder.__eq__
    assert [shim.pid for shim in remains.shims(ours)] == [doomed.process.pid]
    doomed.kill_shim()
    shutil.rmtree(doomed.folder)
    assert remains.tasks(ours) == {job.id}
    await asyncio.to_thread(remains.end_tasks, {job.id, uuid4()})
    assert doomed.left_over() == []


async def test_who_only_reads_a_tasks_files_is_left_alone(doomed: Host) -> None:
    job = await start(doomed, "sleep 1000")
    reader = subprocess.Popen(["tail", "-f", doomed.task_folder(job.id) / "runner.log"], stdout=subprocess.DEVNULL)
    await asyncio.to_thread(remains.end_tasks, {job.id})
    assert reader.poll() is None
    reader.kill()
    reader.wait()
    await job.shim.terminate(job.id)
    await job.shim.remove(job.id)
