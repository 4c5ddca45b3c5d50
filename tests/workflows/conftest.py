"""A real Temporal server and a real Postgres, with workflows and transactions as they are, and simulated agents."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest_asyncio
from sqlalchemy import text
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import Replayer, Worker
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

import workflows
from activities.fleets import Fleets
from activities.instance_rows import InstanceRows
from activities.instances import Instances
from activities.placement import Placement
from activities.recall import Recall
from activities.runs import Runs
from activities.sweeping import Sweeping
from activities.world import World
from perdure.agents.client import Agents
from perdure.backends import Backend
from perdure.blobs.folder import FolderBlobs
from perdure.model.messages import FleetInput, JobOutcome
from perdure.model.names import IO_QUEUE, SEARCH_ATTRIBUTES, SIGNAL_TELL, WATCH_QUEUE, WORKFLOW_QUEUE
from perdure.model.timing import Timing
from perdure.store import installation, instances, lives
from perdure.store.database import Database
from perdure.store.instances import InstanceRecord
from perdure.wire import DATA_CONVERTER
from tests.support.cloud import CloudAgents, CloudBackend, Provider, kind, served
from tests.support.invariants import assert_invariants
from tests.support.postgres import database, database_url, postgres_server
from tests.support.simulated import OFFER, SimulatedHosts
from tests.support.waiting import WITHIN, eventually

__all__ = ["database", "database_url", "postgres_server"]

QUICK = Timing(
    heartbeat=20.0,
    watch_heartbeat=20.0,
    activity_retry=0.05,
    retry_backoff=(0.2, 0.4),
    stop_grace=0.5,
    abort_bound=20.0,
    terminate_retry=0.05,
)


@dataclass
class LocalOffers:
    """The local backend's offers; everything else of it is simulated in activities."""

    name: str = "local"

    def offers(self, requirements: object) -> list[Any]:
        return [OFFER]


CLOUD_QUICK = QUICK.but(heartbeat=3.0, offer=0.5, settle=0.5, provisioning=60.0, sweep_grace=0.0)


@dataclass
class Lab:
    """What a scenario works with."""

    client: Client
    database: Database
    hosts: SimulatedHosts
    world: World
    outcomes: list[JobOutcome] = field(default_factory=list)

    async def submit(self, name: str, **configuration: object) -> WorkflowHandle[Any, Any]:
        configuration = {"type": "task", "commands": ["true"], **configuration}
        return await self.client.start_workflow(
            "RunWorkflow",
            {"configuration": configuration},
            id=f"run/main/{name}",
            task_queue=WORKFLOW_QUEUE,
        )

    async def end(self, handle: WorkflowHandle[Any, Any]) -> str:
        """The status a run ended with, and nothing left behind."""
        try:
            result = await asyncio.wait_for(handle.result(), WITHIN)
            return result["status"]
        except WorkflowFailureError as error:
            return f"failed: {error.cause}"

    async def status(self, handle: WorkflowHandle[Any, Any], wanted: str, message: str = "") -> None:
        """Wait until the run shows this status, with this in its message."""
        deadline = time.monotonic() + WITHIN
        while True:
            view = (await handle.query("state"))["view"]
            if view["status"] == wanted and message in view["message"]:
                return
            assert time.monotonic() < deadline, f"still {view}, not {wanted} {message}"
            await asyncio.sleep(0.05)

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait for something in this process."""

        async def here() -> bool:
            return true()

        await eventually(here)

    async def rows(self, query: str) -> list[Any]:
        async with self.database.transaction() as tx:
            return list((await tx.execute(text(query))).all())

    async def lose(self, instance_id: UUID) -> None:
        """What the sweep does about an instance that its provider has not any more."""
        async with self.database.transaction() as tx:
            nudges = await lives.vanished(tx, instance_id, "it was deleted", lambda _: [OFFER])
        for nudge in nudges:
            await self.client.get_workflow_handle(nudge.workflow_id).signal(SIGNAL_TELL, nudge.news)

    async def at_rest(self) -> None:
        """Every invariant, once nothing moves any more."""
        self.hosts.assert_quiet()
        await assert_invariants(self.database)


@dataclass
class CloudLab(Lab):
    """A lab on a cloud: instances are bought, reached, terminated and swept as they are in real life."""

    provider: Provider = field(default_factory=Provider)
    backend: CloudBackend = None  # type: ignore[assignment]

    def time(self, **changes: float) -> None:
        """For what is submitted from now on."""
        self.world.timing = self.world.timing.but(**changes)

    async def sweep(self) -> list[str]:
        """One pass, as the schedule makes it; its findings in words."""
        return await self.client.execute_workflow("SweepWorkflow", id=f"sweep/{uuid4()}", task_queue=WORKFLOW_QUEUE)

    async def instances(self) -> list[InstanceRecord]:
        """All there ever were, in their order."""
        async with self.database.transaction() as tx:
            ids = (await tx.execute(text("SELECT id FROM instances ORDER BY created_at, num"))).scalars()
            return [await instances.load(tx, one) for one in ids]

    async def instance(self) -> InstanceRecord:
        """The only one."""
        (only,) = await self.instances()
        return only

    async def until_instances(self, *statuses: str) -> list[InstanceRecord]:
        """Wait until these are the statuses of all of them, in any order."""
        found: list[InstanceRecord] = []

        async def so() -> bool:
            found[:] = await self.instances()
            return sorted(one.status.value for one in found) == sorted(statuses)

        await eventually(so, f"instances that are {statuses}")
        return found

    async def at_rest(self) -> None:
        """Also: what bills is exactly what living rows have bought, and what is terminated is gone."""
        await super().at_rest()
        bought = [one.purchase for one in await self.instances() if one.status.value in ("idle", "busy")]
        assert sorted(bought) == sorted(machine.token for machine in self.provider.alive())


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def temporal_address() -> AsyncIterator[str]:
    """One dev server a session."""
    binary = shutil.which("temporal", path=str(Path(os.sys.executable).parent))  # type: ignore[attr-defined]
    assert binary, "the temporal binary is not installed: make setup"
    extra = [word for name, kind in SEARCH_ATTRIBUTES.items() for word in ("--search-attribute", f"{name}={kind}")]
    extra += ["--dynamic-config-value", "history.transferProcessorMaxPollRPS=100"]
    extra += ["--dynamic-config-value", "history.timerProcessorMaxPollRPS=100"]
    env = await WorkflowEnvironment.start_local(dev_server_existing_path=binary, dev_server_extra_args=extra)
    try:
        yield env.client.service_client.config.target_host
    finally:
        await env.shutdown()


def sandbox() -> SandboxedWorkflowRunner:
    """Tests run workflows in the sandbox: it finds what is not deterministic."""
    restrictions = SandboxRestrictions.default.with_passthrough_modules("perdure", "pydantic", "annotated_types")
    return SandboxedWorkflowRunner(restrictions=restrictions)


@contextlib.asynccontextmanager
async def workers(client: Client, steps: Sequence[Callable[..., object]], world: World) -> AsyncIterator[None]:
    """One that runs workflows and transactions as they are, and these ``steps`` as everything else."""
    rows = [Runs(world), Placement(world), InstanceRows(world), Fleets(world), Recall(world)]
    transactions = [
        method
        for part in rows
        for method in (getattr(part, name) for name in dir(part))
        if hasattr(method, "__temporal_activity_definition")
    ]
    common = {"max_cached_workflows": 200, "graceful_shutdown_timeout": __import__("datetime").timedelta(0)}
    async with (
        Worker(
            client,
            task_queue=WORKFLOW_QUEUE,
            workflows=workflows.ALL,
            activities=transactions,
            workflow_runner=sandbox(),
            **common,
        ),
        Worker(client, task_queue=IO_QUEUE, activities=steps, **common),
        Worker(client, task_queue=WATCH_QUEUE, activities=steps, **common),
    ):
        yield


@pytest_asyncio.fixture
async def lab(temporal_address: str, database: Database) -> AsyncIterator[Lab]:
    """A namespace, a database, and four simulated local instances at most."""
    client = await namespace(temporal_address)
    hosts = SimulatedHosts()
    world = await a_world(client, database, {"local": LocalOffers()})  # type: ignore[dict-item]
    async with workers(client, hosts.activities(), world):
        await apply_fleet(client, "local", nodes="0..4", placement="cluster")
        await eventually(lambda: _fleet_is_there(database))
        yield Lab(client, database, hosts, world)
    await assert_replays(client)


@pytest_asyncio.fixture
async def cloud(temporal_address: str, database: Database, tmp_path: Path) -> AsyncIterator[CloudLab]:
    """The same, on a fake cloud that sells small machines, big ones for more, and huge ones for still more."""
    client = await namespace(temporal_address)
    hosts, provider = SimulatedHosts(), Provider()
    async with served(provider) as url:
        backend = CloudBackend(url, [kind("small", 1.0), kind("big", 2.0), kind("huge", 4.0)])
        world = await a_world(client, database, {"cloud": backend}, CloudAgents(provider).as_agents())
        world.blobs = FolderBlobs(tmp_path, world.installation)
        world.timing = CLOUD_QUICK
        steps, sweeping = Instances(world), Sweeping(world)
        bought = [steps.create_instance, steps.reach_instance, steps.terminate_instance, sweeping.sweep]
        async with workers(client, [*bought, *hosts.job_activities()], world):
            await apply_fleet(client, "cloud", nodes="0..8", placement="cluster")
            await eventually(lambda: _fleet_is_there(database))
            yield CloudLab(client, database, hosts, world, provider=provider, backend=backend)
            provider.heal()
        await backend.close()
    await assert_replays(client)


async def namespace(temporal_address: str) -> Client:
    """A client of a namespace of its own."""
    namespace = f"t{uuid4().hex[:12]}"
    admin = await Client.connect(temporal_address)
    await _register(admin, namespace)
    return await Client.connect(temporal_address, namespace=namespace, data_converter=DATA_CONVERTER)


async def a_world(
    client: Client, database: Database, backends: dict[str, Backend], agents: Agents | None = None
) -> World:
    found = await installation.ensure(database)
    return World(
        database=database,
        blobs=None,  # type: ignore[arg-type]
        backends=backends,
        agents=agents,  # type: ignore[arg-type]
        temporal=client,
        installation=found.id,
        epoch=found.epoch,
        private_key=b"\0" * 32,
        worker="test",
        incarnation=UUID(int=1),
        timing=QUICK,
    )


async def apply_fleet(client: Client, name: str, **configuration: object) -> WorkflowHandle[Any, Any]:
    fleet = {"type": "fleet", "name": name, **configuration}
    return await client.start_workflow(
        "FleetWorkflow",
        FleetInput(configuration=fleet, timing=QUICK),
        id=f"fleet/main/{name}",
        task_queue=WORKFLOW_QUEUE,
    )


async def assert_replays(client: Client) -> None:
    """Every history that the test made leads, replayed, to the same commands again."""
    replayer = Replayer(
        workflows=workflows.ALL,
        workflow_runner=sandbox(),
        namespace=client.namespace,
        data_converter=DATA_CONVERTER,
    )
    histories = client.list_workflows().map_histories()
    results = await replayer.replay_workflows(histories, raise_on_replay_failure=False)
    assert not results.replay_failures, results.replay_failures


async def _fleet_is_there(database: Database) -> bool:
    async with database.transaction() as tx:
        return bool((await tx.execute(text("SELECT count(*) FROM fleets"))).scalar())


async def _register(client: Client, namespace: str) -> None:
    from google.protobuf.duration_pb2 import Duration
    from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest
    from temporalio.api.workflowservice.v1 import RegisterNamespaceRequest

    retention = Duration(seconds=86400)
    await client.workflow_service.register_namespace(
        RegisterNamespaceRequest(namespace=namespace, workflow_execution_retention_period=retention)
    )
    kinds = {"Keyword": 2, "Int": 3, "Double": 4, "KeywordList": 7}
    wanted = {name: kinds[kind] for name, kind in SEARCH_ATTRIBUTES.items()}
    request = AddSearchAttributesRequest(namespace=namespace, search_attributes=wanted)  # type: ignore[arg-type]
    deadline = time.monotonic() + WITHIN
    while time.monotonic() < deadline:
        try:
            await client.operator_service.add_search_attributes(request)
            return
        except RPCError as error:
            if error.status is RPCStatusCode.ALREADY_EXISTS:
                return
            await asyncio.sleep(0.1)  # a new namespace is not known everywhere at once
    raise AssertionError("search attributes could not be added")
