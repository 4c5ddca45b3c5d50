"""Claims that wait for what has come to be there.

Every transaction that frees capacity grants it. This is for what no transaction of ours knows of, such as a machine
that has got a container engine or a larger disk.
"""

from __future__ import annotations

from collections.abc import Iterable
from uuid import UUID

from activities.placement import offered
from activities.sweeping.together import together
from activities.world import World
from perdure.model.events import ClaimGranted
from perdure.model.messages import Finding
from perdure.model.resources import Offer, Requirements
from perdure.store import projects, releases, sweeping


class WaitingLook:
    def __init__(self, world: World):
        self.world = world

    async def look(self) -> list[Finding]:
        async with self.world.database.transaction() as tx:
            waiting = await sweeping.projects_that_wait(tx)
        return await together(self._project(project_id) for project_id in waiting)

    async def _project(self, project_id: UUID) -> list[Finding]:
        async with self.world.database.transaction() as tx:
            await projects.lock(tx, project_id)
            nudges = await releases.hand_on(tx, project_id, [], self._offers)
        return [
            Finding(
                kind="capacity",
                subject=str(nudge.news.run_id),
                message=f"{nudge.workflow_id} waited for what is there now: granted",
                nudges=(nudge,),
                settled=True,
            )
            for nudge in nudges
            if isinstance(nudge.news, ClaimGranted)
        ]

    def _offers(self, requirements: Requirements) -> Iterable[Offer]:
        return offered(self.world, requirements)
