"""Is everything as it must be? Rows against the invariants, and against what the backends and Temporal say."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from uuid import UUID

from temporalio import activity
from temporalio.client import WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

from activities.errors import translated
from activities.placement import offered
from activities.vault import Vault
from activities.world import World
from perdure.backends import ProviderInstance
from perdure.model.api import DOCTOR, Check, Checks
from perdure.model.errors import CannotOpen, PerdureError
from perdure.model.ids import instance_workflow_id
from perdure.model.messages import Nothing
from perdure.store import instances, invariants, secrets, sweeping

AT_ONCE = 20
"""Workflows described at the same time."""


class Doctor:
    def __init__(self, world: World):
        self._world = world

    @activity.defn(name=DOCTOR.name)
    @translated
    async def doctor(self, _: Nothing) -> Checks:
        """Every invariant with what breaks it. While work is under way, a finding may be a step's middle: what is
        wrong stays there when asked again."""
        async with self._world.database.transaction() as tx:
            rows = await invariants.broken(tx, lambda requirements: offered(self._world, requirements))
        checks = [Check(invariant=one.invariant, ok=not one.findings, findings=one.findings) for one in rows]
        return Checks(checks=(*checks, *await self._providers(), *await self._workflows(), *await self._secrets()))

    async def _providers(self) -> list[Check]:
        """What a provider has of ours has a living row, and the other way round."""
        at_provider: dict[str, list[ProviderInstance]] = {}
        silent: list[str] = []
        for name, backend in self._world.backends.items():
            try:
                at_provider[name] = await backend.list()
            except PerdureError as error:
                silent.append(f"backend {name} does not answer: {error.message}")
        async with self._world.database.transaction() as tx:
            living = {one.purchase: one for one in await instances.living(tx)}
        orphans = [
            f"{name} has {there.instance_id}, which no living row knows"
            for name, found in at_provider.items()
            for there in self._ours(found)
            if there.instance_id not in living
        ]
        known = {name: {there.instance_id for there in found} for name, found in at_provider.items()}
        missing = [
            f"{one.name} is {one.status.value}, and {one.backend} does not have it"
            for one in living.values()
            if one.status in ("idle", "busy") and one.purchase not in known.get(one.backend, {one.purchase})
        ]
        return [
            _check("every backend answers", silent),
            _check("what a provider has of ours has a living row", orphans),
            _check("every instance that is here is there at its provider", missing),
        ]

    async def _workflows(self) -> list[Check]:
        """Every living row is minded by an open workflow."""
        async with self._world.database.transaction() as tx:
            machines = {instance_workflow_id(one.instance_id): one.name for one in await instances.living(tx)}
            runs = {one.workflow_id: one.workflow_id for one in await sweeping.runs(tx) if not one.ended}
        return [
            _check("every living instance has its workflow", await self._unminded(machines)),
            _check("every run that is not over has its workflow", await self._unminded(runs)),
        ]

    async def _secrets(self) -> list[Check]:
        """The key file is the one that they were set under."""
        vault = Vault(self._world.private_key)
        closed: list[str] = []
        async with self._world.database.transaction() as tx:
            every = await secrets.every_box(tx)
        for project, name, box in every:
            try:
                vault.unlock(project, name, box)
            except CannotOpen as error:
                closed.append(f"project {project}: {error.message}")
        return [_check("every secret can be opened with this worker's key", closed)]

    async def _unminded(self, names: Mapping[str, str]) -> list[str]:
        gate = asyncio.Semaphore(AT_ONCE)

        async def look(workflow_id: str) -> bool:
            async with gate:
                return await self._is_open(workflow_id)

        states = await asyncio.gather(*(look(workflow_id) for workflow_id in names))
        return [
            f"{name}: workflow {workflow_id} is not open"
            for (workflow_id, name), is_open in zip(names.items(), states, strict=True)
            if not is_open
        ]

    async def _is_open(self, workflow_id: str) -> bool:
        try:
            found = await self._world.temporal.get_workflow_handle(workflow_id).describe()
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return False
            raise
        return found.status is WorkflowExecutionStatus.RUNNING

    def _ours(self, found: Iterable[ProviderInstance]) -> list[ProviderInstance]:
        ours: tuple[UUID, int] = (self._world.installation, self._world.epoch)
        return [there for there in found if (there.installation, there.epoch) == ours]


def _check(invariant: str, findings: Iterable[str]) -> Check:
    listed = tuple(findings)
    return Check(invariant=invariant, ok=not listed, findings=listed)
