"""What agents have that no living job knows, and blocks that wait for their host to be heard from."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from activities.contact import Patience, endpoint_of
from activities.placement import offered
from activities.removing import forget
from activities.sweeping.suspicion import Suspicion
from activities.sweeping.together import together
from activities.world import World
from perdure.agents.client import ShimClient
from perdure.model.errors import AgentUnreachable, InstanceGone
from perdure.model.messages import Finding
from perdure.model.resources import Offer, Requirements
from perdure.model.statuses import InstanceStatus
from perdure.store import ends, instances, lives, sweeping
from perdure.store.instances import InstanceRecord
from perdure.store.sweeping import Quarantine

HOSTS_AT_ONCE = 32
"""They mostly wait: for hosts that do not answer, 9 s each."""

HERE = (InstanceStatus.IDLE, InstanceStatus.BUSY)


class AgentsLook:
    def __init__(self, world: World, suspicion: Suspicion):
        self.world = world
        self.suspicion = suspicion

    def _offers(self, requirements: Requirements) -> Iterable[Offer]:
        return offered(self.world, requirements)

    async def look(self) -> list[Finding]:
        async with self.world.database.transaction() as tx:
            here = [one for one in await instances.living(tx) if one.status in HERE]
            quarantined = await sweeping.quarantined(tx)
        return await together(
            (
                self._instance(one, [lost for lost in quarantined if lost.instance_id == one.instance_id])
                for one in here
            ),
            at_once=HOSTS_AT_ONCE,
        )

    async def _instance(self, instance: InstanceRecord, quarantined: list[Quarantine]) -> list[Finding]:
        try:
            shim = await self.world.agents.shim(await endpoint_of(self.world, instance))
            tasks = await shim.tasks()
        except InstanceGone as error:
            return await self._gone(instance, error.message)
        except AgentUnreachable:
            return []  # its jobs' watches and its own workflow decide what that means
        async with self.world.database.transaction() as tx:
            await instances.set_reached(tx, instance.instance_id)
        waiting = {lost.job_id for lost in quarantined}
        stale = [task.id for task in tasks.tasks if task.id not in waiting]
        found = await together(self._stale(instance, shim, task_id) for task_id in stale)
        return found + await together(self._quarantined(instance, shim, lost) for lost in quarantined)

    async def _gone(self, instance: InstanceRecord, message: str) -> list[Finding]:
        """No job of it is left that would find out."""
        async with self.world.database.transaction() as tx:
            if await sweeping.has_living_jobs(tx, instance.instance_id):
                return []
            nudges = await lives.vanished(tx, instance.instance_id, message, self._offers)
        return [
            Finding(
                kind="lost-instance",
                subject=str(instance.instance_id),
                message=f"{instance.name}: {message}",
                nudges=nudges,
                settled=True,
            )
        ]

    async def _stale(self, instance: InstanceRecord, shim: ShimClient, task_id: UUID) -> list[Finding]:
        async with self.world.database.transaction() as tx:
            if await sweeping.job_is_living(tx, task_id):
                return []
        if not self.suspicion.confirmed(f"task {task_id}", self.world.timing.sweep_grace):
            return []
        await forget(shim, task_id, Patience(self.world.timing.abort_bound))
        message = f"{instance.name} had a task that no living job knows: removed"
        return [Finding(kind="stale-task", subject=str(task_id), message=message, settled=True)]

    async def _quarantined(self, instance: InstanceRecord, shim: ShimClient, lost: Quarantine) -> list[Finding]:
        """Its host answers: nothing of the job that held it may be left there, then it is free."""
        await forget(shim, lost.job_id, Patience(self.world.timing.abort_bound))
        async with self.world.database.transaction() as tx:
            nudges = await ends.lift_quarantine(tx, lost.job_id, self._offers)
        message = f"{instance.name} was heard from again and clean: its blocks are free"
        return [
            Finding(
                kind="quarantine",
                subject=str(instance.instance_id),
                message=message,
                nudges=nudges,
                settled=True,
            )
        ]
