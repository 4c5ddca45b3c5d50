"""A fleet: keep what its specification says, follow changes, drain on delete."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from temporalio import workflow

from workflows.calls import refusal, tell, transact, unbroken
from workflows.run import start_instance

with workflow.unsafe.imports_passed_through():
    from perdure.model import activities as do
    from perdure.model.errors import Conflict, FieldError, InvalidConfiguration
    from perdure.model.ids import OwnName, parse_fleet_workflow_id
    from perdure.model.messages import FleetInput, FleetRecord, FleetView, InstanceInput
    from perdure.model.names import APPLY, FLEET_WORKFLOW, SIGNAL_TELL
    from perdure.model.requests import storable, understood, wrong_request


@dataclass
class Change:
    """A configuration that somebody wants."""

    configuration: dict[str, Any]
    view: FleetView | None = None
    """The fleet with it, or the errors for which it was refused."""


@workflow.defn(name=FLEET_WORKFLOW)
class FleetWorkflow:
    """Instances above ``nodes.min`` come and go with the runs that claim them; this sees to the minimum, and to the
    end: a fleet that is deleted takes no claim, and is gone when its last instance is.

    Takes ``FleetInput`` as untyped JSON: a typed parameter would leave a malformed one retrying for ever.
    """

    _fleet: FleetInput
    _name: OwnName
    """Both are known once the request is understood."""

    def __init__(self) -> None:
        self._wanted: list[Change] = []
        self._told = False
        self._deleting = False
        self._tries = 0
        """How often in a row the minimum could not be made."""

        self._again_at: datetime | None = None
        """When it is tried again."""

    @workflow.run
    async def run(self, request: Any = None) -> str:
        try:
            self._fleet = understood(FleetInput, storable(request))
            self._name = _own_name()
        except InvalidConfiguration as error:
            raise refusal(error) from None
        return await unbroken(self._live(), self.delete)

    # --- what comes in --------------------------------------------------------------------------------------------

    @workflow.signal(name=APPLY)
    def apply(self, configuration: Any = None) -> None:
        """Change the fleet; whether that was refused, only the log says."""
        if isinstance(configuration, dict):
            self._wanted.append(Change(configuration))  # pyright: ignore[reportUnknownArgumentType]

    @workflow.update(name=APPLY)
    async def apply_now(self, configuration: Any = None) -> None:
        """Change the fleet; it is written when this returns.

        Fails with the code and the ``Problem`` of ``InvalidConfiguration`` or ``Conflict``.
        """
        change = Change(configuration)
        self._wanted.append(change)
        await workflow.wait_condition(lambda: change.view is not None or self._deleting)
        if change.view is None:
            raise refusal(_being_deleted())
        if change.view.errors:
            raise refusal(InvalidConfiguration(list(change.view.errors)))

    @apply_now.validator
    def may_apply(self, configuration: Any = None) -> None:
        if self._deleting:
            raise refusal(_being_deleted())
        if not isinstance(configuration, dict):
            raise refusal(InvalidConfiguration([FieldError(path="", message="is not a mapping")]))

    @workflow.signal
    def delete(self) -> None:
        self._deleting = self._told = True

    @workflow.signal(name=SIGNAL_TELL)
    def tell(self, news: Any = None) -> None:
        self._told = True

    # --- its life -------------------------------------------------------------------------------------------------

    async def _live(self) -> str:
        user = "" if workflow.info().continued_run_id else self._fleet.user
        view = await self._record(self._fleet.configuration, again=True, user=user)
        if view.errors:
            await workflow.wait_condition(workflow.all_handlers_finished)
            raise refusal(InvalidConfiguration(list(view.errors)))
        while not view.gone:
            self._pace(view)
            self._show(view)
            await self._wait()
            if workflow.info().is_continue_as_new_suggested() and self._is_quiet():
                workflow.continue_as_new(self._fleet)
            view = await self._step(view)
        await workflow.wait_condition(workflow.all_handlers_finished)
        return "deleted"

    async def _wait(self) -> None:
        """Until somebody says something, or it is time to try again."""
        try:
            await workflow.wait_condition(
                lambda: self._told or bool(self._wanted),
                timeout=None if self._again_at is None else self._again_at - workflow.now(),
                timeout_summary="before the next try to make its minimum",
            )
        except TimeoutError:
            return

    async def _step(self, view: FleetView) -> FleetView:
        """Follow the next change, or look again; the fleet as it is then."""
        self._told = False
        if self._wanted and not self._deleting:
            change = self._wanted.pop(0)
            change.view = await self._record(change.configuration, again=True)
            if change.view.errors:
                workflow.logger.warning("a change of the fleet was refused: %s", change.view.errors)
                return view
            self._fleet = self._fleet.but(configuration=change.configuration)
            self._tries, self._again_at = 0, None
            return change.view
        due = self._again_at is not None and self._again_at <= workflow.now()
        if due:
            self._again_at = None
        return await self._record(self._fleet.configuration, again=due)

    def _pace(self, view: FleetView) -> None:
        """Set when to try again, if the minimum could not be made."""
        if not view.missing:
            self._again_at = None
            if not view.why:
                self._tries = 0
        elif self._again_at is None:
            pauses = self._fleet.timing.fleet_retry
            self._again_at = workflow.now() + timedelta(seconds=pauses[min(self._tries, len(pauses) - 1)])
            self._tries += 1

    def _show(self, view: FleetView) -> None:
        words = f"{'deleting' if self._deleting else 'active'}, {view.live} instance(s)"
        if self._again_at is not None:
            why = view.why or "nothing can make one now"
            words += f"; {view.missing} missing ({why}), next try at {self._again_at:%H:%M:%S} UTC"
        workflow.set_current_details(words)

    def _is_quiet(self) -> bool:
        return not (self._deleting or self._wanted) and workflow.all_handlers_finished()

    async def _record(self, configuration: dict[str, Any], *, again: bool, user: str = "") -> FleetView:
        project, name = self._name
        record = FleetRecord(
            project=project,
            name=name,
            configuration=configuration,
            deleting=self._deleting,
            again=again,
            user=user,
        )
        view = await transact(do.RECORD_FLEET, record, self._fleet.timing, summary="write the fleet")
        for place in view.fresh:
            await start_instance(
                InstanceInput(
                    instance_id=place.instance_id,
                    name=place.instance_name,
                    project=project,
                    timing=self._fleet.timing,
                )
            )
        await tell(view.nudges)
        return view


def _own_name() -> OwnName:
    workflow_id = workflow.info().workflow_id
    name = parse_fleet_workflow_id(workflow_id)
    if name is None:
        hint = "start it as fleet/{project}/{name}, such as fleet/main/gpus"
        raise wrong_request("", f"the workflow id is {workflow_id!r}", hint)
    return name


def _being_deleted() -> Conflict:
    return Conflict("the fleet is being deleted", hint="apply it again when it is gone")
