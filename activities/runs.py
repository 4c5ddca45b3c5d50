"""A run is resolved once, its calendar read, and its line in the projection written."""

from __future__ import annotations

from temporalio import activity

from activities.errors import translated
from activities.world import World
from perdure.core.slots import page
from perdure.model import activities as do
from perdure.model.errors import InvalidConfiguration
from perdure.model.ids import OwnName, parse_run_workflow_id
from perdure.model.messages import (
    CalendarPage,
    CalendarQuestion,
    Nothing,
    Resolved,
    ResolveRun,
    RunRecord,
    RunRequest,
)
from perdure.model.requests import understood, wrong_request
from perdure.spec import resolve
from perdure.spec.effective import EffectiveRun
from perdure.store import events, recall, runs, secrets


class Runs:
    def __init__(self, world: World):
        self._world = world

    @activity.defn(name=do.RESOLVE_RUN.name)
    @translated
    async def resolve_run(self, wanted: ResolveRun) -> Resolved:
        """What the run is in full, or everything that is wrong with it. Asked again, it says the same as before."""
        name = parse_run_workflow_id(wanted.workflow_id)
        async with self._world.database.transaction() as tx:
            known = await runs.effective(tx, wanted.run_id)
            progress = await recall.progress(tx, wanted.run_id) if known is not None else ()
            names = await secrets.names(tx, name.project) if name else set[str]()
        if known is not None:
            return Resolved(policy=known.policy, progress=progress)
        try:
            run = self._resolved(wanted, name, names)
        except InvalidConfiguration as error:
            if name is not None:
                async with self._world.database.transaction() as tx:
                    await events.refused(tx, name, wanted.run_id, _user(wanted.request), error.message)
            return Resolved(errors=tuple(error.errors))
        async with self._world.database.transaction() as tx:
            await runs.insert(tx, run)
        return Resolved(policy=run.policy)

    @activity.defn(name=do.READ_CALENDAR.name)
    @translated
    async def read_calendar(self, question: CalendarQuestion) -> CalendarPage:
        """Which slots a schedule had, and which one is next: recorded, for time zones change under long runs."""
        return page(question.schedule, question.since, question.until)

    @activity.defn(name=do.RECORD_RUN.name)
    @translated
    async def record_run(self, record: RunRecord) -> Nothing:
        """The run's line, and which ends it has heard."""
        async with self._world.database.transaction() as tx:
            await runs.record(tx, record)
        return Nothing()

    def _resolved(self, wanted: ResolveRun, name: OwnName | None, names: set[str]) -> EffectiveRun:
        """``names``: of the secrets that there are.

        Raises:
            InvalidConfiguration
        """
        if name is None:
            raise wrong_request(
                "",
                f"the workflow id is {wanted.workflow_id!r}",
                "start it as run/{project}/{name}, such as run/main/train",
            )
        request = understood(RunRequest, wanted.request)
        return resolve(
            request.configuration,
            flags=request.flags,
            profile=request.profile,
            run_id=wanted.run_id,
            project=name.project,
            name=name.name,
            user=request.user,
            submitted_at=wanted.submitted_at,
            code=request.code,
            sealed=request.sealed,
            arguments=request.arguments,
            secrets=names,
            timing=self._world.timing,
        )


def _user(request: object) -> str:
    """Whose request it is, if it says so; the rest of it need not be in order."""
    user: object = request.get("user") if isinstance(request, dict) else ""  # pyright: ignore
    return user if isinstance(user, str) else ""
