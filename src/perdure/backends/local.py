"""``local``: instances are shim processes on this machine, at addresses of their own where the system has them.

A shim is detached, and outlives the worker that started it; the embedded stack starts it again if it dies.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

from perdure.agents.client import Agents
from perdure.backends import Endpoint, Order, ProviderInstance
from perdure.backends.hardware import container_engine, this_machine
from perdure.backends.local_end import end_remains, terminate
from perdure.backends.local_shims import LONGEST_INSIDE, Folder, folders
from perdure.backends.places import root_state, short_path
from perdure.model.errors import CapacityError, InstanceGone
from perdure.model.messages import Termination
from perdure.model.resources import Offer, Requirements

ADDRESSES = ["127.0.0.1"] if sys.platform == "darwin" else [f"127.0.0.{n}" for n in range(1, 255)]
"""On Linux all of 127/8 answers; on macOS only the first, which instances then share."""

REGION = "local"


class LocalBackend:
    """Every instance offers the whole machine: nothing is fenced off between them."""

    name = "local"

    def __init__(self, home: Path, agents: Agents):
        self._home = home
        self._agents = agents
        self._instances = short_path(home, "instances", 13 + LONGEST_INSIDE)
        self._instances.resolve().mkdir(parents=True, exist_ok=True)
        self._offer = self._look()

    async def refresh(self) -> bool:
        """Look again what the machine has; whether that may be enough for somebody for whom it was not before."""
        before, self._offer = self._offer, await asyncio.to_thread(self._look)
        return _may_be_more(before, self._offer)

    def offers(self, requirements: Requirements) -> list[Offer]:
        return [self._offer]

    async def create(self, order: Order) -> None:
        await asyncio.to_thread(self._create, order)

    async def find(self, instance_id: UUID) -> bool:
        found = self._folder(instance_id).read()
        return found is not None and found["instance_id"] == str(instance_id)

    async def endpoint(self, instance_id: UUID, token: str) -> Endpoint:
        folder = self._folder(instance_id)
        if not folder.description.exists():
            raise InstanceGone(f"its instance is gone: {folder.path} was deleted")
        return Endpoint(instance_id, str(folder.path / "shim.sock"), token)

    async def address(self, instance_id: UUID) -> str | None:
        found = self._folder(instance_id).read()
        return None if found is None else found["address"]

    async def terminate(self, instance_id: UUID) -> Termination:
        folder = self._folder(instance_id)
        return await terminate(folder, self._jobs() / folder.path.name, self._agents)

    def end_remains(self) -> None:
        """End what lives of instances whose folders were deleted. All others have been terminated.

        Raises:
            OSError: something survives.
        """
        homes = {self._instances, self._instances.resolve()}
        end_remains(lambda folder: folder.parent in homes, self._jobs().iterdir())

    async def list(self) -> list[ProviderInstance]:
        return [
            ProviderInstance(
                instance_id=UUID(found["instance_id"]),
                installation=UUID(found["installation"]),
                epoch=int(found["epoch"]),
                age=time.time() - folder.description.stat().st_mtime,
            )
            for folder in await asyncio.to_thread(folders, self._home)
            if (found := folder.read()) is not None
        ]

    def _folder(self, instance_id: UUID) -> Folder:
        return Folder(self._instances / instance_id.hex[:12])

    def _look(self) -> Offer:
        executors = ("process", "docker") if container_engine() else ("process",)
        return Offer(
            backend=self.name,
            region=REGION,
            instance_type="local",
            resources=this_machine(self._home),
            executors=executors,
        )

    def _create(self, order: Order) -> None:
        folder = self._folder(order.instance_id)
        with self._alone():
            if folder.read() is None:
                folder.path.mkdir(mode=0o700, exist_ok=True)
                self._describe(folder, order)
        if not folder.leaving.exists():
            folder.start()

    def _describe(self, folder: Folder, order: Order) -> None:
        work_dir = self._jobs() / folder.path.name
        work_dir.mkdir(mode=0o711, exist_ok=True)
        described = {
            "instance_id": str(order.instance_id),
            "token": order.token,
            "address": self._free_address(),
            "name": order.name,
            "installation": str(order.installation),
            "epoch": order.epoch,
            "work_dir": str(work_dir),
            "home": str(self._home.resolve()),
        }
        beside = folder.path / ".instance.json"
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            json.dump(described, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        beside.rename(folder.description)

    def _jobs(self) -> Path:
        """Where jobs have their files: where their uid may enter, which is not root's home."""
        jobs = (root_state(self._home) if os.geteuid() == 0 else self._home) / "jobs"
        jobs.mkdir(exist_ok=True)
        jobs.chmod(0o711)
        return jobs

    def _free_address(self) -> str:
        taken = {found["address"] for folder in folders(self._home) if (found := folder.read()) is not None}
        free = next((address for address in ADDRESSES if address not in taken), None)
        if free is not None:
            return free
        if len(ADDRESSES) > 1:
            raise CapacityError("this machine has no more local addresses: 254 instances live on it")
        return ADDRESSES[0]

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        handle = os.open(self._instances / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def _may_be_more(before: Offer, after: Offer) -> bool:
    """Free space goes up and down all the time: it counts by the GB."""
    space = after.resources.disk_mib - before.resources.disk_mib
    return space >= 1024 or after.but(resources=after.resources.but(disk_mib=before.resources.disk_mib)) != before
