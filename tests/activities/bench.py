"""What the scenarios of activities are built from: a world with real parts, rows as placement would write them, and
activities run as attempts, each with the heartbeat details of the one before."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID, uuid4

import psutil
from nacl.public import PrivateKey
from sqlalchemy import bindparam, text
from sqlalchemy.dialects.postgresql import JSONB
from temporalio.testing import ActivityEnvironment

from activities.contact import Patience
from activities.instances import Instances
from activities.jobs import Starting
from activities.logs import Watching
from activities.stopping import Stopping
from activities.world import World
from perdure.agents import disk
from perdure.agents.client import Agents
from perdure.agents.identity import Process
from perdure.backends import Endpoint
from perdure.backends.local import LocalBackend
from perdure.backends.local_shims import Folder, folders
from perdure.blobs.folder import FolderBlobs
from perdure.model.ids import job_id, log_key
from perdure.model.messages import InstanceRef, JobKey, JobOutcome, JobRecord, JobStep, StopJob
from perdure.model.policy import RunPolicy
from perdure.model.resources import Requirements
from perdure.model.statuses import JobReason, JobStatus
from perdure.model.timing import Timing
from perdure.spec.effective import EffectiveRun
from perdure.store import installation, instances, jobs, projects
from perdure.store.database import Database
from tests.support.waiting import until

T = TypeVar("T")

TIMING = Timing(heartbeat=2.0, watch_heartbeat=2.0, sweep_grace=0.0)
"""Patience is the product's own: a test that waits for its end gives its step less."""


@dataclass
class Bench:
    world: World
    home: Path
    project_id: UUID
    fleet_id: UUID
    made: list[UUID] = field(default_factory=list)
    num: int = 0

    # --- activities -----------------------------------------------------------------------------------------

    async def call(self, step: Callable[[Any], Awaitable[T]], value: Any, *details: Any) -> T:
        """One attempt of an activity; ``details`` are the last heartbeat's of the attempt before."""
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, heartbeat_details=list(details), task_token=uuid4().bytes)
        return await environment.run(step, value)

    async def submit(self, step: JobStep) -> JobOutcome:
        return await self.call(Starting(self.world).submit_task, step)

    async def start(self, step: JobStep) -> JobOutcome:
        return await self.call(Starting(self.world).start_job, step)

    async def watch(self, step: JobStep, *details: Any) -> JobOutcome:
        return await self.call(Watching(self.world).watch_job, step, *details)

    async def stop(self, step: JobStep, grace: float = 1.0) -> JobOutcome:
        wish = StopJob(step=step, grace=grace, reason=JobReason.TERMINATED_BY_USER)
        return await self.call(Stopping(self.world).stop_job, wish)

    async def remove(self, step: JobStep) -> JobOutcome:
        return await self.call(Stopping(self.world).remove_task, step)

    async def execute(self, statement: str, **values: Any) -> None:
        async with self.world.database.transaction() as tx:
            await tx.execute(text(statement), values)

    # --- instances ------------------------------------------------------------------------------------------

    async def pending_instance(self) -> UUID:
        """A row as a grant writes it: to be made."""
        offers = [
            offer.model_dump(mode="json")
            for backend in self.world.backends.values()
            for offer in backend.offers(Requirements())
        ]
        query = text("""
            INSERT INTO instances (id, project_id, fleet_id, num, name, status, offers, token, total_blocks,
                                   busy_blocks, backend, region, message)
            VALUES (:id, :project, :fleet, :num, :name, 'pending', :offers, :token, 1, 0, '', '', '')
        """).bindparams(bindparam("offers", type_=JSONB))
        values = {"id": uuid4(), "project": self.project_id, "fleet": self.fleet_id, "num": self.num}
        values |= {"name": f"local-{self.num}", "offers": offers, "token": uuid4().hex}
        self.num += 1
        async with self.world.database.transaction() as tx:
            await tx.execute(query, values)
        self.made.append(values["id"])
        return values["id"]

    async def instance(self) -> UUID:
        """One that is there and idle, with its shim."""
        made = await self.pending_instance()
        steps = Instances(self.world)
        assert (await self.call(steps.create_instance, InstanceRef(instance_id=made))).offer is not None
        reached = await self.call(steps.reach_instance, InstanceRef(instance_id=made))
        assert reached.reached, reached.message
        query = text("UPDATE instances SET status = 'idle', address = :address WHERE id = :id")
        async with self.world.database.transaction() as tx:
            await tx.execute(query, {"id": made, "address": reached.address})
        return made

    async def endpoint(self, instance_id: UUID) -> Endpoint:
        async with self.world.database.transaction() as tx:
            record = await instances.load(tx, instance_id)
        return await self.world.backends["local"].endpoint(instance_id, record.token)

    def folder(self, instance_id: UUID) -> Folder:
        """Of the instance's shim, to kill and start it."""
        return next(one for one in folders(self.home) if one.path.name == instance_id.hex[:12])

    def kill_shim(self, instance_id: UUID) -> None:
        shim = self.folder(instance_id).shim()
        assert shim is not None
        shim.kill()
        until(lambda: not shim.alive)

    async def revive(self, instance_id: UUID) -> None:
        """Start its shim again, and wait until it answers."""
        self.folder(instance_id).start()
        shim = await self.world.agents.shim(await self.endpoint(instance_id))
        await Patience(60.0)(shim.healthcheck)

    def kill_runners(self) -> None:
        """All there are: each job goes on without its runner."""
        for path in self.home.glob("instances/*/tasks/*/runner.json"):
            runner = disk.read(path, Process)
            if runner is not None and runner.alive:
                runner.kill()
                until(lambda: not runner.alive)  # noqa: B023

    async def lose_state(self, instance_id: UUID) -> None:
        """The host comes back with an empty disk: its processes are gone, and its shim knows nothing."""
        self.kill_shim(instance_id)
        self.kill_runners()
        folder = self.folder(instance_id)
        for process in psutil.process_iter(["cmdline"]):
            if str(folder.path / "tasks") in " ".join(process.info["cmdline"] or []):
                process.kill()
        shutil.rmtree(folder.path / "tasks")
        (folder.path / "fences.json").unlink()
        await self.revive(instance_id)

    # --- jobs -----------------------------------------------------------------------------------------------

    async def job(
        self, instance_id: UUID, script: str, run_id: UUID | None = None, name: str = "", **effective: Any
    ) -> JobStep:
        """A run of one job, placed on the instance, as its workflow would find it."""
        run_id = run_id or uuid4()
        name = name or f"r{run_id.hex[:8]}"
        policy = RunPolicy(run_id=run_id, project="main", name=name, submitted_at=datetime.now(UTC))
        spec = EffectiveRun(policy=policy, argv=("/bin/sh", "-c", script), **effective)
        claim_id = uuid4()
        key = JobKey(run_id=run_id, job_id=job_id(run_id, 0, 0, 0), replica=0, node=0, submission=0)
        async with self.world.database.transaction() as tx:
            await _insert_run(tx, self.project_id, spec)
            await _insert_claim(tx, self.project_id, claim_id, run_id, name, instance_id)
            await jobs.record(
                tx,
                JobRecord(
                    key=key,
                    claim_id=claim_id,
                    instance_id=instance_id,
                    status=JobStatus.PROVISIONING,
                    at=datetime.now(UTC),
                ),
            )
        return JobStep(
            key=key, claim_id=claim_id, instance_id=instance_id, addresses=("127.0.0.1",), timing=self.world.timing
        )

    async def running(self, instance_id: UUID, script: str, **effective: Any) -> JobStep:
        step = await self.job(instance_id, script, **effective)
        for bring_up in (self.submit, self.start):
            outcome = await bring_up(step)
            assert outcome.reason is None, outcome
        return step

    async def row(self, step: JobStep) -> jobs.JobContext:
        async with self.world.database.transaction() as tx:
            return await jobs.load(tx, step.key.job_id)

    async def log(self, step: JobStep) -> bytes:
        """As far as it is committed."""
        length = (await self.row(step)).log_bytes
        stored = b""
        while len(stored) < length:
            page = await self.world.blobs.read_log(log_key(step.key.job_id), len(stored), length - len(stored))
            assert page, f"{length} bytes are committed and {len(stored)} stored"
            stored += page
        return stored

    async def printed(self, step: JobStep, word: bytes) -> bool:
        """Whether the job has written it, as its own host knows."""
        logs = self.home.glob(f"instances/*/tasks/{step.key.job_id}/log")
        return any(word in path.read_bytes() for path in logs)

    async def tasks(self, instance_id: UUID) -> list[UUID]:
        """What the shim has."""
        shim = await self.world.agents.shim(await self.endpoint(instance_id))
        return [task.id for task in (await shim.tasks()).tasks]


@asynccontextmanager
async def opened(database: Database, home: Path) -> AsyncIterator[Bench]:
    found = await installation.ensure(database)
    agents = Agents()
    world = World(
        database=database,
        blobs=FolderBlobs(home / "blobs", found.id),
        backends={"local": LocalBackend(home, agents)},
        agents=agents,
        temporal=None,  # type: ignore[arg-type]
        installation=found.id,
        epoch=found.epoch,
        private_key=bytes(PrivateKey.generate()),
        worker="test-1",
        incarnation=uuid4(),
        timing=TIMING,
    )
    async with database.transaction() as tx:
        project_id = await projects.ensure(tx, "main")
        fleet_id = await _insert_fleet(tx, project_id)
    bench = Bench(world, home, project_id, fleet_id)
    try:
        yield bench
    finally:
        for backend in world.backends.values():
            for there in await backend.list():
                assert (await backend.terminate(there.instance_id)).gone
        await agents.close()


async def _insert_fleet(tx: Any, project_id: UUID) -> UUID:
    query = text("""
        INSERT INTO fleets (id, project_id, name, status, nodes_min, nodes_max, placement, blocks, requirements,
                            configuration)
        VALUES (:id, :project, 'local', 'active', 0, 4, 'any', 1, '{}', '{}')
    """)
    fleet_id = uuid4()
    await tx.execute(query, {"id": fleet_id, "project": project_id})
    return fleet_id


async def _insert_run(tx: Any, project_id: UUID, spec: EffectiveRun) -> None:
    query = text("""
        INSERT INTO runs (id, project_id, name, user_name, kind, status, message, spec, submitted_at, recorded_at)
        VALUES (:id, :project, :name, '', 'task', 'provisioning', '', :spec, now(), now())
    """).bindparams(bindparam("spec", type_=JSONB))
    values = {"id": spec.policy.run_id, "project": project_id, "name": spec.policy.name}
    await tx.execute(query, values | {"spec": spec.model_dump(mode="json")})


async def _insert_claim(
    tx: Any, project_id: UUID, claim_id: UUID, run_id: UUID, name: str, instance_id: UUID
) -> None:
    query = text("""
        INSERT INTO claims (id, project_id, run_id, owner, replica, submission, nodes, priority, requirements,
                            shape, wait, queue_patience, keep, status, message, queued_at, granted_at)
        VALUES (:id, :project, :run, :owner, 0, 0, 1, 0, '{}', '', false, 600, 0, 'ready', '', now(), now())
    """)
    values = {"id": claim_id, "project": project_id, "run": run_id, "owner": f"run/main/{name}"}
    await tx.execute(query, values)
    hold = text("INSERT INTO holdings (instance_id, block, claim_id, node) VALUES (:instance, 0, :claim, 0)")
    await tx.execute(hold, {"instance": instance_id, "claim": claim_id})
    busy = text("UPDATE instances SET status = 'busy', busy_blocks = 1 WHERE id = :id")
    await tx.execute(busy, {"id": instance_id})
