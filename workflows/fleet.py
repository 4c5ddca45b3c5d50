"""A fleet: keep what its specification says, follow changes, drain on delete."""

from __future__ import annotations

from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from workflows.calls import tell, transact, unbroken
from workflows.run import start_instance

with workflow.unsafe.imports_passed_through():
    from perdure.model import activities as do
    from perdure.model.errors import InvalidConfiguration
    from perdure.model.messages import FleetInput, FleetRecord, FleetView, InstanceInput
    from perdure.model.names import FLEET_WORKFLOW, SIGNAL_TELL


@workflow.defn(name=FLEET_WORKFLOW)
class FleetWorkflow:
    """Instances above ``nodes.min`` come and go with the runs that claim them; this sees to the minimum, and to the
    end: a fleet that is deleted takes no claim, and is gone when its last instance is."""

    @workflow.init
    def __init__(self, fleet: FleetInput) -> None:
        self._configuration = fleet.configuration
        self._timing = fleet.timing
        self._user = fleet.user
        self._changed = True
        self._deleting = False

    @workflow.run
    async def run(self, fleet: FleetInput) -> str:
        return await unbroken(self._live(), self.delete)

    @workflow.signal
    def apply(self, configuration: dict[str, Any]) -> None:
        self._configuration = configuration
        self._changed = True

    @workflow.signal
    def delete(self) -> None:
        self._deleting = True
        self._changed = True

    @workflow.signal(name=SIGNAL_TELL)
    def tell(self, news: Any = None) -> None:
        self._changed = True

    async def _live(self) -> str:
        kept = self._configuration
        while True:
            self._changed = False
            view = await self._record(self._configuration)
            if view.errors and kept is self._configuration:
                error = InvalidConfiguration(list(view.errors))
                raise ApplicationError(error.message, type=error.code, non_retryable=True)
            if view.errors:
                workflow.logger.warning("a change of the fleet was refused: %s", view.errors)
                self._configuration = kept
                continue
            kept = self._configuration
            workflow.set_current_details(f"{'deleting' if self._deleting else 'active'}, {view.live} instance(s)")
            if self._deleting and view.live == 0:
                return "deleted"
            await workflow.wait_condition(lambda: self._changed)
            if workflow.info().is_continue_as_new_suggested() and not self._deleting:
                workflow.continue_as_new(FleetInput(configuration=kept, user=self._user, timing=self._timing))

    async def _record(self, configuration: dict[str, Any]) -> FleetView:
        _, project, name = workflow.info().workflow_id.split("/", 2)
        record = FleetRecord(project=project, name=name, configuration=configuration, deleting=self._deleting)
        view = await transact(do.RECORD_FLEET, record, self._timing, summary="write the fleet")
        for place in view.fresh:
            await start_instance(
                InstanceInput(
                    instance_id=place.instance_id, name=place.instance_name, project=project, timing=self._timing
                )
            )
        await tell(view.nudges)
        return view
