"""The worker: ``python -m perdure.stack.worker``, configured by its environment (``perdure.stack.settings``).

The same program in the embedded stack and in production. It waits for Temporal and Postgres to be there, and ends
only when told to, or with one sentence when it would only fail again.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from perdure.model import names
from perdure.model.errors import PerdureError
from perdure.model.ids import fleet_workflow_id
from perdure.model.messages import FleetInput
from perdure.stack.home import StackError, write_atomically
from perdure.stack.part import CANNOT_START
from perdure.stack.settings import Settings

if TYPE_CHECKING:
    from temporalio.client import Client

    from activities.world import World

log = logging.getLogger("perdure.worker")

PROJECT = "main"
LOCAL_FLEET = {"type": "fleet", "name": "local", "nodes": "0..4", "placement": "cluster"}

SWEEP_EVERY = timedelta(minutes=1)
REFRESH_EVERY = 30.0

FLEET_WITHIN = 10.0
SAY_AGAIN = 30.0
"""Seconds between two lines about the same thing that is waited for."""

T = TypeVar("T")


def main() -> None:
    """Exit status 0 after SIGTERM or SIGINT, 78 with one sentence as the last line if it cannot work."""
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )
    logging.getLogger("alembic").setLevel(logging.WARNING)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    gc.disable()  # all that is made while importing stays
    try:
        asyncio.run(run(Settings.read()))
    except PerdureError as error:
        print(error.message + (f" ({error.hint})" if error.hint else ""), file=sys.stderr)
        sys.exit(CANNOT_START)


async def run(settings: Settings) -> None:
    """Work until SIGTERM or SIGINT.

    Raises:
        PerdureError: the database is of a newer version, or an activity is not as declared.
    """
    me = asyncio.current_task()
    assert me is not None
    stopping = False

    def stop() -> None:
        nonlocal stopping
        stopping = True
        me.cancel()

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    try:
        await _work(settings)
    except asyncio.CancelledError:
        if not stopping:
            raise
        log.info("stopped")


async def _work(settings: Settings) -> None:
    from perdure.stack import assembly
    from perdure.store.database import Database

    gc.freeze()
    gc.enable()
    log.info("worker %s starts, process %d", settings.worker, os.getpid())
    client, _ = await asyncio.gather(_temporal(), _migrated(settings.database_url))
    database = Database(settings.database_url)
    try:
        world = await assembly.make_world(settings, database, client)
        workers = assembly.make_workers(settings, client, world)
        await asyncio.gather(_search_attributes(client), _fail_stale_watches(world), _sweep_schedule(client))
        running = [asyncio.create_task(worker.run()) for worker in workers]
        try:
            if settings.local_fleet:
                await _local_fleet(world)
            _say_ready(settings)
            refreshing = asyncio.create_task(_refresh(world))
            await asyncio.wait([*running, refreshing], return_when=asyncio.FIRST_EXCEPTION)
            refreshing.cancel()
        finally:
            await asyncio.gather(*(worker.shutdown() for worker in workers))
            await asyncio.gather(*running)
    finally:
        await database.close()


async def _patiently(what: str, call: Callable[[], Awaitable[T]], *waits_for: type[Exception]) -> T:
    """Repeat a call until what it needs is there; said at once, and again from time to time."""
    said = 0.0
    pause = 0.05
    while True:
        try:
            return await call()
        except waits_for as error:
            if isinstance(error, PerdureError) and not error.retryable:
                raise
            if time.monotonic() - said > SAY_AGAIN:
                log.info(
                    "waiting for %s: %s", what, str(error).splitlines()[0] if str(error) else type(error).__name__
                )
                said = time.monotonic()
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, 2.0)


async def _temporal() -> Client:
    """A connection as Temporal's own settings say, to a namespace that answers."""
    from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
    from temporalio.client import Client
    from temporalio.envconfig import ClientConfig
    from temporalio.service import RPCError

    from perdure.wire import DATA_CONVERTER

    config = ClientConfig.load_client_connect_config()
    target = config.setdefault("target_host", "127.0.0.1:7233")

    async def connect() -> Client:
        client = await Client.connect(**config, data_converter=DATA_CONVERTER)
        await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=client.namespace))
        return client

    client = await _patiently(f"Temporal at {target}", connect, RuntimeError, RPCError)
    log.info("connected to Temporal at %s, namespace %s", target, client.namespace)
    return client


async def _migrated(url: str) -> None:
    from alembic.util.exc import CommandError
    from sqlalchemy.exc import SQLAlchemyError

    from perdure.store.migrations import migrate

    try:
        await _patiently("Postgres", lambda: migrate(url), OSError, SQLAlchemyError, PerdureError)
    except CommandError as error:
        # Alembic's words for a revision it has never heard of.
        raise StackError(
            f"the database was written by a newer Perdure ({error})", hint="install that version, or newer"
        ) from None
    log.info("the database has the newest tables")


async def _search_attributes(client: Client) -> None:
    """Those of ours that the namespace does not have yet."""
    from temporalio.api.enums.v1 import IndexedValueType
    from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest

    listed = await client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=client.namespace)
    )
    missing = {
        name: IndexedValueType.Value(f"INDEXED_VALUE_TYPE_{_SCREAMING.get(kind, kind.upper())}")
        for name, kind in names.SEARCH_ATTRIBUTES.items()
        if name not in listed.custom_attributes
    }
    if missing:
        await client.operator_service.add_search_attributes(
            AddSearchAttributesRequest(namespace=client.namespace, search_attributes=missing)
        )
        log.info("search attributes added: %s", ", ".join(missing))


_SCREAMING = {"KeywordList": "KEYWORD_LIST"}


async def _fail_stale_watches(world: World) -> None:
    """What this worker's predecessor watched: Temporal gives it out again at once, not after a heartbeat's time."""
    from temporalio.exceptions import ApplicationError
    from temporalio.service import RPCError, RPCStatusCode

    from perdure.store import jobs

    async with world.database.transaction() as tx:
        tokens = await jobs.stale_watches(tx, world.worker, world.incarnation)

    async def fail(token: bytes) -> None:
        handle = world.temporal.get_async_activity_handle(task_token=token)
        try:
            await handle.fail(ApplicationError("its worker was started again", type="worker-restarted"))
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND:
                raise

    await asyncio.gather(*(fail(token) for token in tokens))
    if tokens:
        log.info("%d watches of the worker before this one are given out again", len(tokens))


async def _sweep_schedule(client: Client) -> None:
    from temporalio.client import (
        Schedule,
        ScheduleActionStartWorkflow,
        ScheduleAlreadyRunningError,
        ScheduleIntervalSpec,
        ScheduleOverlapPolicy,
        SchedulePolicy,
        ScheduleSpec,
    )

    action = ScheduleActionStartWorkflow(
        names.SWEEP_WORKFLOW, id=names.SWEEP_SCHEDULE, task_queue=names.WORKFLOW_QUEUE
    )
    schedule = Schedule(
        action=action,
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=SWEEP_EVERY)]),
        policy=SchedulePolicy(overlap=ScheduleOverlapPolicy.SKIP),
    )
    with contextlib.suppress(ScheduleAlreadyRunningError):
        await client.create_schedule(names.SWEEP_SCHEDULE, schedule)


async def _sweep_now(client: Client) -> None:
    from temporalio.service import RPCError

    with contextlib.suppress(RPCError):  # it comes within a minute anyway
        await client.get_schedule_handle(names.SWEEP_SCHEDULE).trigger()


async def _local_fleet(world: World) -> None:
    """Ask for it, and wait until it is there: who submits a run right after ``up`` finds it."""
    from sqlalchemy import text
    from temporalio.common import WorkflowIDConflictPolicy

    await world.temporal.start_workflow(
        names.FLEET_WORKFLOW,
        FleetInput(configuration=LOCAL_FLEET),
        id=fleet_workflow_id(PROJECT, str(LOCAL_FLEET["name"])),
        task_queue=names.WORKFLOW_QUEUE,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
    )
    there = text(
        "SELECT 1 FROM fleets f JOIN projects p ON p.id = f.project_id"
        " WHERE p.name = :project AND f.name = :name AND f.status = 'active'"
    )
    deadline = time.monotonic() + FLEET_WITHIN
    while time.monotonic() < deadline:
        async with world.database.transaction() as tx:
            if (await tx.execute(there, {"project": PROJECT, "name": LOCAL_FLEET["name"]})).first():
                return
        await asyncio.sleep(0.02)
    log.warning("the fleet %s is not there yet", LOCAL_FLEET["name"])


def _say_ready(settings: Settings) -> None:
    log.info("ready: %s, state in %s", settings.worker, settings.home.path)
    if settings.ready_file is not None:
        write_atomically(settings.ready_file, str(os.getpid()))


async def _refresh(world: World) -> None:
    """Backends never block on what they offer: it is looked up here. Whoever waited for what is new gets it now."""
    from perdure.backends.local import LocalBackend

    while True:
        await asyncio.sleep(REFRESH_EVERY)
        for backend in world.backends.values():
            if isinstance(backend, LocalBackend) and await backend.refresh():
                await _sweep_now(world.temporal)


if __name__ == "__main__":
    main()
