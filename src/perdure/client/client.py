"""The public Python API: everything the command line can do."""

from __future__ import annotations

import asyncio
import getpass
import os
from collections.abc import AsyncIterator, Mapping
from typing import Any, Self
from uuid import UUID

from temporalio.client import (
    Client,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
)
from temporalio.common import (
    Priority,
    SearchAttributeKey,
    SearchAttributePair,
    TypedSearchAttributes,
    WorkflowIDConflictPolicy,
    WorkflowIDReusePolicy,
)
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError
from temporalio.service import RPCError, RPCStatusCode

from perdure.client.calls import Calls, check_size, problem_in, promptly, unreachable
from perdure.client.connection import Place, connect, find_temporal
from perdure.client.events import Events
from perdure.client.logs import LogPiece, follow
from perdure.client.schedules import Schedules
from perdure.client.secrets import Secrets
from perdure.client.stories import story
from perdure.model import api
from perdure.model.errors import Conflict, ControlPlaneError, InvalidConfiguration, NotFound, UserError
from perdure.model.ids import PROJECT_NAME, RESOURCE_NAME, fleet_workflow_id, run_workflow_id
from perdure.model.messages import FleetInput, Nothing, RunRequest
from perdure.model.names import (
    APPLY,
    FLEET_WORKFLOW,
    PRIORITY_PERSON,
    RUN_WORKFLOW,
    SEARCH_ATTRIBUTES,
    SIGNAL_STOP,
    SWEEP_SCHEDULE,
    WORKFLOW_QUEUE,
)
from perdure.model.statuses import RunStatus

STUCK_ATTEMPTS = 2
"""A run whose workflow task failed this often in a row does not hear signals."""


FLEET_PATIENCE = 20.0
"""Seconds in which a worker writes a fleet's row; it takes well under one."""


class PerdureClient:
    """One connection to an installation.

    ::

        client = await PerdureClient.connect()
        run_id = await client.apply("main", "hello", RunRequest(configuration={...}))
        async for piece in client.follow_logs("main", "hello"):
            print(piece.data)
        run = await client.wait("main", "hello", run_id)
    """

    def __init__(self, client: Client, place: Place):
        self.temporal = client
        self.place = place
        self._call = Calls(client, place)
        self._hello: api.Hello | None = None
        self.secrets = Secrets(self._call, self.hello)
        self.events = Events(self._call)
        self.schedules = Schedules(client, place, self.get_run)

    @classmethod
    async def connect(cls, place: Place | None = None, *, environ: Mapping[str, str] = os.environ) -> Self:
        """To ``place``, or wherever the settings say (``perdure.client.connection``).

        Raises:
            ControlPlaneError
        """
        place = place or find_temporal(environ)
        return cls(await connect(place), place)

    def be_patient(self, seconds: float = 120.0) -> None:
        """From now on, outlast a worker or a Temporal that is away for so long: for what follows a run."""
        self._call.patience = seconds

    # --- reads ----------------------------------------------------------------------------------------------------

    async def hello(self) -> api.Hello:
        """Who answers. Asked once a connection."""
        if self._hello is None:
            self._hello = await self._call(api.HELLO, Nothing())
        return self._hello

    async def plan(self, request: api.PlanRequest) -> api.Plan:
        """What would happen. Mistakes of the configuration are in ``Plan.errors``."""
        return await self._call(api.PLAN, request, within=60)

    async def list_runs(self, project: str, *, all: bool = False, limit: int = 100) -> tuple[api.RunRow, ...]:
        """Newest first; those that have not ended, or ``all``."""
        return (await self._call(api.LIST_RUNS, api.RunQuery(project=project, all=all, limit=limit))).runs

    async def get_run(self, project: str, name: str | None = None, run_id: UUID | None = None) -> api.RunRow:
        """The newest run of that name, or the one with that id, with every submission of its jobs.

        Raises:
            NotFound
        """
        query = api.RunQuery(project=project, name=name, run_id=run_id, all=True, limit=1)
        rows = (await self._call(api.LIST_RUNS, query)).runs
        if not rows:
            raise NotFound(
                f"there is no run {name or run_id} in project {project}", hint="`perdure ps -a` lists them all"
            )
        return rows[0]

    async def fleets(self, project: str) -> tuple[api.FleetRow, ...]:
        return (await self._call(api.LIST_FLEETS, api.FleetQuery(project=project))).fleets

    async def offers(
        self, project: str, requirements: Mapping[str, Any] | None = None, *, limit: int = 50
    ) -> api.OfferRows:
        """What could run a job with these ``resources:`` and profile fields."""
        query = api.OfferQuery(project=project, requirements=dict(requirements or {}), max_offers=limit)
        return await self._call(api.LIST_OFFERS, query, within=60)

    async def doctor(self) -> tuple[api.Check, ...]:
        """Every invariant, and what breaks it."""
        return (await self._call(api.DOCTOR, Nothing(), within=120)).checks

    def follow_logs(
        self,
        project: str,
        name: str,
        *,
        run_id: UUID | None = None,
        replica: int = 0,
        node: int = 0,
        attempt: int | None = None,
        wait: bool = True,
    ) -> AsyncIterator[LogPiece]:
        """The output of one job, from its first byte, as it comes (see ``perdure.client.logs``).

        Without ``attempt``: with ``wait`` every attempt from now on, one after the other, until the run ends;
        without, what there is of the last one.
        """
        return follow(self, project, name, run_id=run_id, slot=(replica, node), attempt=attempt, wait=wait)

    async def told(self, query: api.StoryQuery) -> api.Story:
        """What a worker tells of a run."""
        return await self._call(api.EXPLAIN_RUN, query)

    async def read_log(self, query: api.LogQuery) -> api.LogPage:
        """One page; waits up to ``query.wait`` seconds for its first byte."""
        return await self._call(api.READ_LOG, query, within=query.wait + 30, beats=True)

    async def story(self, project: str, name: str | None = None, run_id: UUID | None = None) -> api.Story:
        """A run's life in plain words: the newest of that name, or the one with that id.

        Raises:
            NotFound
        """
        return await story(self, project, name, run_id)

    # --- runs -----------------------------------------------------------------------------------------------------

    async def apply(self, project: str, name: str, request: RunRequest) -> UUID:
        """Start a run; its id. Code must be in the blob store already (``perdure.client.code``).

        Raises:
            Conflict: a run of this name has not ended.
            UserError: the name or the project is not one; the request is too large.
        """
        check_names(project, name)
        check_size(request)
        kind = str(request.configuration.get("type", "task"))
        attributes = {
            "PerdureProject": project,
            "PerdureRun": name,
            "PerdureKind": kind,
            "PerdureStatus": RunStatus.SUBMITTED.value,
        } | ({"PerdureUser": request.user} if request.user else {})
        handle = await self._start(
            RUN_WORKFLOW,
            request.model_dump(mode="json"),
            run_workflow_id(project, name),
            summary=f"{kind} {name}" + (f" of {request.user}" if request.user else ""),
            attributes=attributes,
            project=project,
            taken=f"a run {name} of project {project} has not ended yet",
            hint=f"see `perdure ps`, stop it with `perdure stop {name}`, or choose another name with -n",
        )
        return UUID(handle.first_execution_run_id)

    async def stop(self, project: str, name: str, *, abort: bool = False, by: str | None = None) -> bool:
        """Ask a run to end: gently, or at once. False: it has ended already.

        A run that cannot hear, because its workflow task keeps failing, is terminated on ``abort``, and what it
        held is swept.

        Raises:
            NotFound: there has never been such a run.
        """
        handle = self.temporal.get_workflow_handle(run_workflow_id(project, name))
        try:
            said = {"abort": abort, "by": by if by is not None else user_name()}
            await promptly(self.place, handle.signal(SIGNAL_STOP, said))
            deaf = abort and await self._end_if_deaf(handle)
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise unreachable(error, self.place) from error
            await self.get_run(project, name)
            return False
        if deaf:
            await self._sweep()
        return True

    async def _end_if_deaf(self, handle: WorkflowHandle[Any, Any]) -> bool:
        described = await handle.describe()
        deaf = described.raw_description.pending_workflow_task.attempt > STUCK_ATTEMPTS
        if deaf:
            await handle.terminate(reason="aborted: its workflow task keeps failing, it cannot hear a stop")
        return deaf

    async def _sweep(self) -> None:
        """See to what nobody owns now, instead of within a minute."""
        try:
            await self.temporal.get_schedule_handle(SWEEP_SCHEDULE).trigger()
        except RPCError as error:
            raise ControlPlaneError(
                f"the run is ended, but what it held is not swept: no schedule {SWEEP_SCHEDULE} ({error.message})",
                hint="a worker makes it when it starts: see that one runs",
            ) from error

    async def closed(self, project: str, name: str, run_id: UUID) -> None:
        """Return when the run's workflow has closed, however it ended; Temporal may have forgotten it since.

        Raises:
            InvalidConfiguration: the worker refused its configuration; there is no run.
        """
        await self._call.patiently(lambda: self._closed(project, name, run_id))

    async def _closed(self, project: str, name: str, run_id: UUID) -> None:
        handle = self.temporal.get_workflow_handle(
            run_workflow_id(project, name), run_id=str(run_id), first_execution_run_id=str(run_id)
        )
        try:
            await handle.result()
        except WorkflowFailureError as error:
            cause = error.cause
            if isinstance(cause, ApplicationError) and cause.type == InvalidConfiguration.code:
                raise problem_in(cause) from error
        except RPCError as error:
            if error.status is RPCStatusCode.NOT_FOUND:
                return
            raise unreachable(error, self.place) from error

    async def wait(self, project: str, name: str, run_id: UUID) -> api.RunRow:
        """The run as it ended."""
        await self.closed(project, name, run_id)
        return await self.get_run(project, name, run_id)

    async def registered(self, project: str, name: str, run_id: UUID) -> api.RunRow:
        """The run, once a worker has read its configuration: a moment after ``apply``.

        Raises:
            InvalidConfiguration: the worker refused it; there is no run.
        """
        ended = asyncio.create_task(self.closed(project, name, run_id))
        try:
            pause = 0.05
            while True:
                over = ended.done()
                if over:
                    ended.result()
                try:
                    return await self.get_run(project, name, run_id)
                except NotFound:
                    if over:
                        raise
                await asyncio.wait([ended], timeout=pause)
                pause = min(pause * 1.5, 1.0)
        finally:
            ended.cancel()

    # --- fleets ---------------------------------------------------------------------------------------------------

    async def apply_fleet(self, project: str, name: str, configuration: Mapping[str, Any], user: str = "") -> bool:
        """Make a fleet, or change the one of that name. True: it is new.

        Raises:
            InvalidConfiguration: the worker refused the change. (Of a new fleet, ``fleet_recorded`` tells that.)
            Conflict: the fleet is being deleted.
            ControlPlaneError: no worker took the change within ``FLEET_PATIENCE``.
        """
        check_names(project, name)
        workflow_id = fleet_workflow_id(project, name)
        try:
            await self._start(
                FLEET_WORKFLOW,
                FleetInput(configuration=dict(configuration), user=user),
                workflow_id,
                summary=f"fleet {name}",
                attributes={"PerdureProject": project, "PerdureKind": "fleet"},
                project=project,
                taken="",
                hint="",
            )
        except Conflict:
            await self._change_fleet(self.temporal.get_workflow_handle(workflow_id), name, configuration)
            return False
        return True

    async def _change_fleet(
        self, fleet: WorkflowHandle[Any, Any], name: str, configuration: Mapping[str, Any]
    ) -> None:
        try:
            async with asyncio.timeout(FLEET_PATIENCE):
                await fleet.execute_update(APPLY, dict(configuration))
        except WorkflowUpdateFailedError as error:
            raise problem_in(error.cause) if isinstance(error.cause, ApplicationError) else error from error
        except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError):
            raise _not_taken(name, fleet.id) from None
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise unreachable(error, self.place) from error
            raise Conflict(f"fleet {name} was deleted meanwhile", hint="apply it again") from error

    async def fleet_recorded(self, project: str, name: str, configuration: Mapping[str, Any]) -> api.FleetRow:
        """The fleet, once a worker has written this configuration: a moment after ``apply_fleet``.

        Raises:
            InvalidConfiguration: the worker refused it.
            ControlPlaneError: it is still not written after ``FLEET_PATIENCE``.
        """
        failed = asyncio.create_task(self._fleet_failure(project, name))
        try:
            async with asyncio.timeout(FLEET_PATIENCE):
                while True:
                    for fleet in await self.fleets(project):
                        if fleet.name == name and fleet.configuration == configuration:
                            return fleet
                    if failed.done():
                        failed.result()
                    await asyncio.sleep(0.1)
        except TimeoutError:
            raise _not_taken(name, fleet_workflow_id(project, name)) from None
        finally:
            failed.cancel()

    async def _fleet_failure(self, project: str, name: str) -> None:
        try:
            await self.temporal.get_workflow_handle(fleet_workflow_id(project, name)).result()
        except WorkflowFailureError as error:
            if isinstance(error.cause, ApplicationError):
                raise problem_in(error.cause) from error
            raise

    async def delete_fleet(self, project: str, name: str) -> None:
        """Ask a fleet to end: it takes no more claims, and is gone when the last of its instances is.

        Raises:
            NotFound
        """
        handle = self.temporal.get_workflow_handle(fleet_workflow_id(project, name))
        try:
            await handle.signal("delete")
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise unreachable(error, self.place) from error
            raise NotFound(
                f"nothing looks after a fleet {name} in project {project}",
                hint="if `perdure fleet` lists it, apply its configuration again, then delete it",
            ) from error

    async def _start(
        self,
        workflow: str,
        request: Any,
        workflow_id: str,
        *,
        summary: str,
        attributes: Mapping[str, str],
        project: str,
        taken: str,
        hint: str,
    ) -> WorkflowHandle[Any, Any]:
        try:
            started = self.temporal.start_workflow(
                workflow,
                request,
                id=workflow_id,
                task_queue=WORKFLOW_QUEUE,
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
                static_summary=summary,
                search_attributes=_search_attributes(attributes),
                priority=Priority(priority_key=PRIORITY_PERSON, fairness_key=project),
            )
            return await promptly(self.place, started)
        except WorkflowAlreadyStartedError as error:
            raise Conflict(taken, hint=hint) from error
        except RPCError as error:
            raise unreachable(error, self.place) from error


def _not_taken(name: str, workflow_id: str) -> ControlPlaneError:
    return ControlPlaneError(
        f"fleet {name} has not taken its configuration",
        hint=f"the workflow {workflow_id} in Temporal's web UI says why",
    )


def _search_attributes(values: Mapping[str, str]) -> TypedSearchAttributes:
    assert all(SEARCH_ATTRIBUTES[name] == "Keyword" for name in values)
    return TypedSearchAttributes(
        [SearchAttributePair(SearchAttributeKey.for_keyword(name), value) for name, value in values.items()]
    )


def check_names(project: str, name: str) -> None:
    """
    Raises:
        UserError: either is not a name.
    """
    if not PROJECT_NAME.match(project):
        raise UserError(f"{project!r} is not the name of a project", hint="1 to 50 of a-z, A-Z, 0-9, - and _")
    if not RESOURCE_NAME.match(name):
        raise UserError(f"{name!r} is not a name", hint="1 to 41 of a-z, 0-9 and -, a letter first")


def user_name() -> str:
    """Who asks, for people to read: nothing depends on it."""
    try:
        return getpass.getuser().encode(errors="surrogateescape").decode(errors="backslashreplace")
    except (KeyError, OSError):
        return ""
