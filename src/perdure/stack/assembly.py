"""What a worker consists of, put together and checked before it takes work."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from nacl.public import PrivateKey
from temporalio.activity import _Definition as ActivityDefinition
from temporalio.client import Client
from temporalio.worker import UnsandboxedWorkflowRunner, Worker, WorkflowRunner
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner, SandboxRestrictions

import activities
import workflows
from activities.world import World
from perdure.agents.client import Agents
from perdure.backends import Backend
from perdure.backends.local import LocalBackend
from perdure.blobs.folder import FolderBlobs
from perdure.model import activities as declared
from perdure.model import api
from perdure.model.activities import Activity, Kind
from perdure.stack.home import StackError
from perdure.stack.settings import Settings
from perdure.store import installation
from perdure.store.database import Database

WORKFLOW_TASKS = 16
"""Slots: more would only make a burst's workflow tasks wait for the same core, and time out."""

CACHED_WORKFLOWS = 5000
"""Above what one worker has active: each one evicted is replayed."""

WATCHES = 5000
REMOTE_STEPS = 200

STICKY = timedelta(seconds=3)
"""How long a workflow task waits for the worker that has the workflow in its cache: after a kill -9, that worker is
gone, and each workflow that something happens to waits for as long."""

GRACE = timedelta(seconds=1)
"""After SIGTERM, for steps to end; then they are cancelled, and go on elsewhere."""


async def make_world(settings: Settings, database: Database, client: Client) -> World:
    """The stores, backends and agents, once migrations have run."""
    this = await installation.ensure(database)
    agents = Agents()
    backends: dict[str, Backend] = {}
    if settings.local:
        backends["local"] = LocalBackend(settings.home.path, agents)
    return World(
        database=database,
        blobs=FolderBlobs(settings.blobs, installation=this.id, durable=settings.durable),
        backends=backends,
        agents=agents,
        temporal=client,
        installation=this.id,
        epoch=this.epoch,
        private_key=private_key(settings.key_file),
        worker=settings.worker,
        incarnation=uuid4(),
        timing=settings.timing,
        code_limit=settings.code_limit,
        retention_days=settings.retention_days,
    )


def make_workers(settings: Settings, client: Client, world: World) -> list[Worker]:
    """One worker a task queue, with all that was declared.

    Raises:
        StackError: an activity is missing, or not as declared.
    """
    by_kind = sort_out(activities.implementations(world))
    return [
        Worker(
            client,
            task_queue=Kind.TRANSACTION,
            workflows=workflows.ALL,
            activities=by_kind[Kind.TRANSACTION],
            workflow_runner=_runner(settings.sandbox),
            max_concurrent_workflow_tasks=WORKFLOW_TASKS,
            max_cached_workflows=CACHED_WORKFLOWS,
            sticky_queue_schedule_to_start_timeout=STICKY,
            graceful_shutdown_timeout=GRACE,
        ),
        Worker(
            client,
            task_queue=Kind.REMOTE,
            activities=by_kind[Kind.REMOTE],
            max_concurrent_activities=REMOTE_STEPS,
            graceful_shutdown_timeout=GRACE,
        ),
        Worker(
            client,
            task_queue=Kind.WATCH,
            activities=by_kind[Kind.WATCH],
            max_concurrent_activities=WATCHES,
            graceful_shutdown_timeout=GRACE,
        ),
    ]


def sort_out(implementations: Sequence[Callable[..., Any]]) -> dict[Kind, list[Callable[..., Any]]]:
    """Implementations by the queue they belong on, checked against the declarations.

    Raises:
        StackError: one is missing, one too many, or one has other types than were declared.
    """
    wanted: dict[str, Activity[Any, Any]] = {each.name: each for each in (*declared.ALL, *api.ALL)}
    by_kind: dict[Kind, list[Callable[..., Any]]] = {kind: [] for kind in Kind}
    wrong: list[str] = []
    for implementation in implementations:
        made = ActivityDefinition.must_from_callable(implementation)
        declaration = wanted.pop(made.name or "", None)
        if declaration is None:
            wrong.append(f"{made.name} is not declared, or implemented twice")
        elif not made.is_async:
            wrong.append(f"{made.name} is not a coroutine")
        elif made.arg_types != [declaration.takes] or made.ret_type != declaration.gives:
            wrong.append(
                f"{made.name} should take {_named(declaration.takes)} and give {_named(declaration.gives)}"
            )
        else:
            by_kind[declaration.kind].append(implementation)
    wrong += [f"{name} is not implemented" for name in wanted]
    if wrong:
        raise StackError("activities are not as declared: " + "; ".join(wrong))
    return by_kind


def private_key(path: Path) -> bytes:
    """The X25519 key in ``path``, made (mode 0600) if there is none: 32 bytes."""
    if not path.exists():
        beside = path.with_name(f".{path.name}.{os.getpid()}")
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(bytes(PrivateKey.generate()))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(beside, path)  # the first of several workers wins
        except FileExistsError:
            pass
        finally:
            beside.unlink()
    key = path.read_bytes()
    if len(key) != PrivateKey.SIZE:
        raise StackError(f"{path} is not a key: {len(key)} bytes instead of {PrivateKey.SIZE}")
    return key


def _runner(sandbox: bool) -> WorkflowRunner:
    if not sandbox:
        return UnsandboxedWorkflowRunner()
    restrictions = SandboxRestrictions.default.with_passthrough_modules("pydantic", "pydantic_core", "perdure")
    return SandboxedWorkflowRunner(restrictions=restrictions)


def _named(kind: type) -> str:
    return kind.__name__
