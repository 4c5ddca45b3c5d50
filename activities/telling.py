"""The story of a run, told from its rows and events."""

from __future__ import annotations

from temporalio import activity

from activities.errors import translated
from activities.world import World
from perdure.core.story import tell
from perdure.model.api import EXPLAIN_RUN, Story, StoryQuery
from perdure.model.errors import NotFound
from perdure.store import stories


class Telling:
    def __init__(self, world: World):
        self._world = world

    @activity.defn(name=EXPLAIN_RUN.name)
    @translated
    async def explain_run(self, query: StoryQuery) -> Story:
        """What happened to a run, and what happens next.

        Raises:
            NotFound
        """
        async with self._world.database.transaction() as tx:
            found = await stories.facts(tx, query)
        if found is None:
            raise NotFound(
                f"there is no run {query.name or query.run_id} in project {query.project}",
                hint="`perdure ps -a` lists them all",
            )
        return tell(*found)
