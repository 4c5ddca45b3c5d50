"""One instance: from written intent to confirmed gone."""

from __future__ import annotations

from datetime import datetime, timedelta

from temporalio import workflow
from temporalio.exceptions import ActivityError

from workflows.calls import In, Out, let_go, start, tell, transact, unbroken

with workflow.unsafe.imports_passed_through():
    from perdure.model import activities as do
    from perdure.model.activities import Activity
    from perdure.model.events import InstanceStop
    from perdure.model.messages import (
        Created,
        InstanceInput,
        InstanceLost,
        InstanceReady,
        InstanceRef,
        InstanceView,
    )
    from perdure.model.names import INSTANCE_WORKFLOW, SIGNAL_TELL
    from perdure.model.statuses import InstanceReason, InstanceStatus

COMING = (InstanceStatus.PENDING, InstanceStatus.PROVISIONING)
HERE = (InstanceStatus.IDLE, InstanceStatus.BUSY)


@workflow.defn(name=INSTANCE_WORKFLOW)
class InstanceWorkflow:
    """Create once, wait for the shim, keep while it is of use, terminate until the provider says that it is gone.

    The row says what is true; this workflow sees to it. Started again, it goes on where the row stands.
    """

    @workflow.init
    def __init__(self, instance: InstanceInput) -> None:
        self._instance = instance
        self._ref = InstanceRef(instance_id=instance.instance_id)
        self._told = False
        self._doubtful = True
        """It was perhaps asked for, and has never been seen."""

    @workflow.run
    async def run(self, instance: InstanceInput) -> str:
        return await unbroken(self._live(), self._look)

    @workflow.signal(name=SIGNAL_TELL)
    def tell(self, news: InstanceStop) -> None:
        self._look()

    def _look(self) -> None:
        """Somebody changed the row."""
        self._told = True

    async def _live(self) -> str:
        view = await self._transact(do.VIEW_INSTANCE, self._ref, "where it stands")
        if view.status in COMING:
            view = await self._bring_up()
        if view.status in HERE:
            self._doubtful = False
            view = await self._keep(view)
        if view.status is not InstanceStatus.TERMINATED:
            await self._take_down(view)
        return view.reason.value if view.reason else "terminated"

    async def _bring_up(self) -> InstanceView:
        timing, me = self._instance.timing, self._instance.instance_id
        workflow.set_current_details("asking the backend for it")
        try:
            created = await self._while_wanted(do.CREATE_INSTANCE, timing.provisioning, "create, once")
        except ActivityError as error:
            lost = InstanceLost(instance_id=me, reason=InstanceReason.ERROR, message=str(error.cause or error))
            return await self._transact(do.INSTANCE_LOST, lost, "it cannot be made")
        if created is None:
            return await self._transact(do.VIEW_INSTANCE, self._ref, "it is not wanted any more")
        if created.offer is None:
            self._doubtful = created.doubtful
            lost = InstanceLost(
                instance_id=me, reason=InstanceReason.NO_OFFERS, message=_none_of(created), tried=created.tried
            )
            return await self._transact(do.INSTANCE_LOST, lost, "no offer")
        workflow.set_current_details(f"made as {created.offer.backend} {created.offer.instance_type}; booting")
        reached = await self._while_wanted(
            do.REACH_INSTANCE, timing.provisioning + timing.activity, "wait for the shim"
        )
        if reached is None:
            return await self._transact(do.VIEW_INSTANCE, self._ref, "it is not wanted any more")
        if not reached.reached:
            reason = InstanceReason.UNREACHABLE if reached.gone else InstanceReason.PROVISIONING_TIMEOUT
            lost = InstanceLost(instance_id=me, reason=reason, message=reached.message, tried=created.tried)
            return await self._transact(do.INSTANCE_LOST, lost, "its shim never answered")
        ready = InstanceReady(instance_id=me, address=reached.address)
        return await self._transact(do.INSTANCE_READY, ready, "ready")

    async def _while_wanted(self, step: Activity[InstanceRef, Out], limit: float, summary: str) -> Out | None:
        """What came of a step of making it; None: the row says meanwhile that it is to go. The step has ended then:
        a create that were still under way could make it after the provider said that it is gone."""
        handle = start(
            step,
            self._ref,
            self._instance.timing,
            limit=limit,
            summary=summary,
            cancelled=workflow.ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
        )
        while True:
            await workflow.wait_condition(lambda: handle.done() or self._told)
            if handle.done():
                return handle.result()
            self._told = False
            if (await self._transact(do.VIEW_INSTANCE, self._ref, "the row changed")).status not in COMING:
                let_go(handle)
                await workflow.wait([handle])
                return None

    async def _keep(self, view: InstanceView) -> InstanceView:
        """Look again when its idle time may be over.

        Idle time that begins between two looks is seen at the next one and ends on time, since a look comes at
        least every ``idle_duration``: nobody has to tell. (Of one that is under five minutes, the begin is told.)
        """
        while view.status in HERE:
            workflow.set_current_details(view.status.value)
            wait = view.idle_duration
            if view.idle_until is not None:
                wait = max((view.idle_until - workflow.now()).total_seconds(), 0.0)
            self._told = False
            try:
                await workflow.wait_condition(
                    lambda: self._told,
                    timeout=None if wait is None else timedelta(seconds=wait),
                    timeout_summary="idle_duration",
                )
                view = await self._transact(do.VIEW_INSTANCE, self._ref, "the row changed")
            except TimeoutError:
                view = await self._transact(do.RETIRE_INSTANCE, self._ref, "terminate if still idle")
            if workflow.info().is_continue_as_new_suggested() and view.status in HERE:
                workflow.continue_as_new(self._instance)
        return view

    async def _take_down(self, view: InstanceView) -> None:
        """Until the provider says that it is gone. What it may have accepted a moment ago, and does not list, is
        believed to be gone only after ``timing.settle``."""
        timing = self._instance.timing
        pause = timing.terminate_retry
        unlisted_since: datetime | None = None
        while True:
            answer = await start(
                do.TERMINATE_INSTANCE, self._ref, timing, limit=10 * timing.activity, summary="terminate"
            )
            if answer.gone and (answer.known or not self._doubtful):
                break
            unlisted_since = (unlisted_since or workflow.now()) if answer.gone else None
            if unlisted_since and (workflow.now() - unlisted_since).total_seconds() >= timing.settle:
                break
            workflow.set_current_details(f"terminating; the provider says: {answer.message}")
            await workflow.sleep(timedelta(seconds=pause), summary=f"not gone yet: {answer.message}"[:200])
            pause = min(2 * pause, timing.terminate_retry_max)
        await self._transact(do.INSTANCE_GONE, self._ref, "gone")
        workflow.set_current_details("terminated")

    async def _transact(self, step: Activity[In, InstanceView], value: In, summary: str) -> InstanceView:
        view = await transact(step, value, self._instance.timing, summary=summary)
        await tell(view.nudges)
        return view


def _none_of(created: Created) -> str:
    """One sentence with the first failure; all of them are kept beside it."""
    first, *others = [failure.words for failure in created.tried] or ["none is left"]
    return f"no offer could be had: {first}" + (f"; {len(others)} more failed" if others else "")
