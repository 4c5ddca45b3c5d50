"""Instances that are shim processes of this machine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID, uuid4

import psutil
import pytest

from perdure.agents.client import Agents
from perdure.agents.protocol import RunnerState, SubmitBody, TaskConfig, TaskStatus
from perdure.backends import Order
from perdure.backends.local import LocalBackend
from perdure.backends.local_shims import Folder, revive
from perdure.backends.places import outside
from perdure.model.errors import InstanceGone
from perdure.model.resources import Requirements, Resources
from perdure.stack.home import Home
from perdure.stack.living import delete
from tests.support.waiting import eventually

INSTALLATION = uuid4()


@pytest.fixture
async def agents() -> AsyncIterator[Agents]:
    one = Agents()
    yield one
    await one.close()


@pytest.fixture
async def home() -> AsyncIterator[Path]:
    with tempfile.TemporaryDirectory(prefix="p-") as folder:
        yield Path(folder)


@pytest.fixture
async def local(home: Path, agents: Agents) -> AsyncIterator[LocalBackend]:
    backend = LocalBackend(home, agents)
    yield backend
    for instance in await backend.list():
        assert (await backend.terminate(instance.instance_id)).gone
    for path in outside(home):
        with contextlib.suppress(FileNotFoundError):
            for left in path.iterdir():
                assert left.name in ("jobs", "i"), left
                left.unlink() if left.is_symlink() else left.rmdir()
            path.rmdir()


def order(backend: LocalBackend, name: str = "local-0") -> Order:
    return Order(uuid4(), name, INSTALLATION, 1, "secret", backend.offers(Requirements())[0])


def folder_of(home: Path, instance_id: UUID) -> Folder:
    return Folder(home / "instances" / instance_id.hex[:12])


async def healthy(local: LocalBackend, agents: Agents, wanted: Order) -> None:
    endpoint = await local.endpoint(wanted.instance_id, wanted.token)

    async def answers() -> bool:
        try:
            return (await (await agents.shim(endpoint)).healthcheck()).instance_id == wanted.instance_id
        except Exception:  # noqa: BLE001 (any error is a no)
            return False

    await eventually(answers)


async def run_job(local: LocalBackend, agents: Agents, wanted: Order, command: str) -> UUID:
    task = uuid4()
    endpoint = await local.endpoint(wanted.instance_id, wanted.token)
    shim = await agents.shim(endpoint)
    run = uuid4()
    info = await shim.submit_task(TaskConfig(id=task, name="t", run_id=run, slot="0-0"))
    async with asyncio.timeout(20):
        while info.status is not TaskStatus.RUNNING:
            info = await shim.task(task, seen=info.status, wait=5)
    runner = agents.runner(endpoint, info.runner_socket)
    body = SubmitBody(
        run_id=run, run_name="t", job_id=task, job_name="t-0-0", commands=["/bin/sh", "-c", f"echo up; {command}"]
    )
    await runner.submit(body)
    await runner.run()
    assert (await runner.logs(0, wait=20)).content == b"up\n"
    assert (await runner.state()).state is RunnerState.RUNNING
    return task


def processes_of(job: UUID) -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get("PERDURE_JOB_ID") == str(job) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


async def test_what_a_machine_has_got_is_told_and_what_it_has_lost_is_not(
    local: LocalBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perdure.backends.local.container_engine", lambda: False)
    monkeypatch.setattr("perdure.backends.local.this_machine", lambda _: machine)
    machine = Resources(cpus=2, memory_mib=4096, disk_mib=10_000)
    await local.refresh()
    machine = machine.but(disk_mib=9_000)
    assert not await local.refresh()
    machine = machine.but(disk_mib=9_100)
    assert not await local.refresh()
    machine = machine.but(disk_mib=20_000)
    assert await local.refresh()
    monkeypatch.setattr("perdure.backends.local.container_engine", lambda: True)
    assert await local.refresh()
    assert not await local.refresh()


async def test_the_offer_is_this_machine(local: LocalBackend) -> None:
    (offer,) = local.offers(Requirements())
    assert offer.backend == "local"
    assert offer.resources.cpus == len(os.sched_getaffinity(0))
    assert offer.resources.memory_mib == psutil.virtual_memory().total // 1024**2
    assert "process" in offer.executors
    assert offer.price == 0


async def test_the_same_order_twice_makes_one_instance(local: LocalBackend, agents: Agents, home: Path) -> None:
    wanted = order(local)
    await asyncio.gather(local.create(wanted), local.create(wanted))
    await healthy(local, agents, wanted)
    first = folder_of(home, wanted.instance_id).shim()
    await local.create(wanted)
    assert folder_of(home, wanted.instance_id).shim() == first
    assert [instance.instance_id for instance in await local.list()] == [wanted.instance_id]


async def test_instances_have_addresses_of_their_own_which_are_used_again(local: LocalBackend) -> None:
    orders = [order(local, f"local-{n}") for n in range(3)]
    for each in orders:
        await local.create(each)
    assert [await local.address(each.instance_id) for each in orders] == ["127.0.0.1", "127.0.0.2", "127.0.0.3"]
    assert (await local.terminate(orders[1].instance_id)).gone
    replacement = order(local, "local-3")
    await local.create(replacement)
    assert await local.address(replacement.instance_id) == "127.0.0.2"


async def test_what_the_provider_has_carries_installation_and_epoch(local: LocalBackend) -> None:
    wanted = order(local)
    await local.create(wanted)
    (found,) = await local.list()
    assert (found.instance_id, found.installation, found.epoch) == (wanted.instance_id, INSTALLATION, 1)
    assert 0 <= found.age < 60
    assert await local.find(wanted.instance_id)
    assert not await local.find(uuid4())


async def test_a_killed_shim_is_started_again_and_its_job_goes_on(
    local: LocalBackend, agents: Agents, home: Path
) -> None:
    wanted = order(local)
    await local.create(wanted)
    await healthy(local, agents, wanted)
    job = await run_job(local, agents, wanted, "sleep 1000")
    await eventually(lambda: asyncio.sleep(0, any(process.name() == "sleep" for process in processes_of(job))))
    before = {process.pid for process in processes_of(job)}
    shim = folder_of(home, wanted.instance_id).shim()
    assert shim is not None
    os.kill(shim.pid, signal.SIGKILL)
    await eventually(lambda: asyncio.sleep(0, not shim.alive))
    assert await asyncio.to_thread(revive, home) == [wanted.name]
    await healthy(local, agents, wanted)
    assert folder_of(home, wanted.instance_id).shim() != shim
    assert {process.pid for process in processes_of(job)} == before != set()
    assert await asyncio.to_thread(revive, home) == []


async def test_terminate_leaves_nothing(local: LocalBackend, agents: Agents, home: Path) -> None:
    wanted = order(local)
    await local.create(wanted)
    await healthy(local, agents, wanted)
    job = await run_job(local, agents, wanted, "trap '' TERM; (trap '' TERM; sleep 1000) & sleep 1000")
    folder = folder_of(home, wanted.instance_id)
    shim, work_dir = folder.shim(), Path((folder.read() or {})["work_dir"])
    assert shim is not None and work_dir.exists() and processes_of(job)
    assert (await local.terminate(wanted.instance_id)).gone
    assert processes_of(job) == []
    assert not shim.alive
    assert not folder.path.exists() and not work_dir.exists()
    assert not await local.find(wanted.instance_id)
    assert (await local.terminate(wanted.instance_id)).gone, "again is no matter"


async def test_an_instance_whose_shim_is_dead_is_terminated_with_its_job(
    local: LocalBackend, agents: Agents, home: Path
) -> None:
    wanted = order(local)
    await local.create(wanted)
    await healthy(local, agents, wanted)
    job = await run_job(local, agents, wanted, "sleep 1000")
    shim = folder_of(home, wanted.instance_id).shim()
    assert shim is not None
    os.kill(shim.pid, signal.SIGKILL)
    assert (await local.terminate(wanted.instance_id)).gone
    assert processes_of(job) == []
    assert not folder_of(home, wanted.instance_id).path.exists()


async def test_an_instance_whose_folder_was_deleted_is_gone_with_its_job(
    local: LocalBackend, agents: Agents, home: Path
) -> None:
    wanted = order(local)
    await local.create(wanted)
    await healthy(local, agents, wanted)
    job = await run_job(local, agents, wanted, "sleep 1000")
    folder = folder_of(home, wanted.instance_id)
    work_dir, shim = Path((folder.read() or {})["work_dir"]), folder.shim()
    assert shim is not None
    os.kill(shim.pid, signal.SIGKILL)
    shutil.rmtree(folder.path)
    assert not await local.find(wanted.instance_id)
    with pytest.raises(InstanceGone, match="was deleted"):
        await local.endpoint(wanted.instance_id, wanted.token)
    assert processes_of(job), "nobody is left who would end it"
    assert (await local.terminate(wanted.instance_id)).gone
    assert processes_of(job) == []
    assert not work_dir.exists()


async def test_nothing_of_a_deleted_folder_outlives_a_home_that_is_deleted(
    local: LocalBackend, agents: Agents, home: Path
) -> None:
    left, other = order(local), order(local, "local-1")
    jobs: list[UUID] = []
    for wanted in (left, other):
        await local.create(wanted)
        await healthy(local, agents, wanted)
        jobs.append(await run_job(local, agents, wanted, "sleep 1000"))
    shims = [shim for one in (left, other) if (shim := folder_of(home, one.instance_id).shim()) is not None]
    work_dirs = [Path((folder_of(home, one.instance_id).read() or {})["work_dir"]) for one in (left, other)]
    os.kill(shims[0].pid, signal.SIGKILL)
    os.kill(shims[1].pid, signal.SIGSTOP)  # one that does not notice
    for wanted in (left, other):
        shutil.rmtree(folder_of(home, wanted.instance_id).path)
    stack = Home(home)
    stack.state_file.write_text("{}")
    await delete(stack)
    assert [process for job in jobs for process in processes_of(job)] == []
    assert not any(shim.alive for shim in shims)
    assert not home.exists()
    assert not any(path.exists() for path in work_dirs)
    home.mkdir()


async def test_an_instance_that_is_being_terminated_is_not_revived(local: LocalBackend, home: Path) -> None:
    wanted = order(local)
    await local.create(wanted)
    folder = folder_of(home, wanted.instance_id)
    folder.leaving.touch()
    folder.stop()
    assert await asyncio.to_thread(revive, home) == []
    assert folder.shim() is None


async def test_a_home_with_a_long_path_works_as_well(agents: Agents, tmp_path: Path) -> None:
    home = tmp_path / ("long-" * 20)
    local = LocalBackend(home, agents)
    wanted = order(local)
    await local.create(wanted)
    await healthy(local, agents, wanted)
    job = await run_job(local, agents, wanted, "sleep 1000")
    assert processes_of(job)
    assert (await local.terminate(wanted.instance_id)).gone
    assert processes_of(job) == []
    for path in outside(home):
        for left in path.iterdir() if path.exists() else []:
            left.unlink() if left.is_symlink() else left.rmdir()
        if path.exists():
            path.rmdir()
