"""A run's whole life: the shell that carries out what ``perdure.core.run`` decides."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

from temporalio import workflow
from temporalio.common import SearchAttributeUpdate, WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, WorkflowAlreadyStartedError

from workflows.calls import refusal, tell, transact, unbroken, unheeded
from workflows.display import details, job_attributes, run_attributes, status_attributes
from workflows.inbox import RunInbox

with workflow.unsafe.imports_passed_through():
    from perdure.core import run as core
    from perdure.core.run import state as happened
    from perdure.model import activities as do
    from perdure.model.errors import InvalidConfiguration
    from perdure.model.events import JobStop, Nudge, StopWanted
    from perdure.model.ids import instance_workflow_id, job_id, job_workflow_id
    from perdure.model.messages import (
        CalendarQuestion,
        CatchUp,
        ClaimRef,
        ClaimRequest,
        InstanceInput,
        JobInput,
        JobKey,
        ResolveRun,
        RunRecord,
    )
    from perdure.model.names import INSTANCE_WORKFLOW, JOB_WORKFLOW, RUN_WORKFLOW
    from perdure.model.requests import storable
    from perdure.model.statuses import RunStatus
    from perdure.model.timing import Timing

upsert: Callable[[list[SearchAttributeUpdate[Any]]], None] = workflow.upsert_search_attributes  # pyright: ignore

MANY_SIGNALS = 8000
"""Temporal stops at 10,000 signals an execution, without a word before."""


@workflow.defn(name=RUN_WORKFLOW)
class RunWorkflow(RunInbox):
    """Drain what happened, apply it, decide, carry out, sleep until something happens or it is time.

    Handlers only enqueue. Takes untyped JSON: a typed parameter would leave a malformed input retrying for ever.
    """

    @workflow.init
    def __init__(self, request: Any = None, carried: Any = None) -> None:
        super().__init__()
        self._cancelled = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._recorded: core.RunView | None = None

    @workflow.run
    async def run(self, request: Any = None, carried: Any = None) -> dict[str, Any]:
        try:
            storable(request)
        except InvalidConfiguration as error:
            raise refusal(error) from None
        return await unbroken(self._live(request, carried), self._cancel)

    @workflow.query(name="state")
    def state(self) -> dict[str, Any]:
        """Everything the run knows, as JSON."""
        state = self._state
        return {
            "view": self._shown.model_dump(mode="json"),
            "run": state.model_dump(mode="json") if state else None,
        }

    def _cancel(self) -> None:
        self._cancelled = True
        self._inbox.append(StopWanted(cause="cancel"))

    # --- the loop -------------------------------------------------------------------------------------------------

    async def _live(self, request: Any, carried: Any) -> dict[str, Any]:
        self._state = state = await self._begin(request, carried)
        while True:
            while self._inbox:
                state = core.apply(state, self._inbox.pop(0))
            state, decision = core.settle(state, workflow.now())
            self._state = state
            for command in decision.commands:
                if isinstance(command, core.Close):
                    return await self._close(state, command)
                self._carry_out(command, state)
            await self._publish(state)
            if self._may_continue_as_new(state):
                workflow.continue_as_new(args=[None, state.model_dump(mode="json")])
            await self._sleep(decision)

    async def _sleep(self, decision: core.Decision) -> None:
        timeout = None if decision.wake_at is None else decision.wake_at - workflow.now()
        try:
            await workflow.wait_condition(
                lambda: bool(self._inbox) or any(task.done() for task in self._tasks),
                timeout=timeout,
                timeout_summary=decision.why or None,
            )
        except TimeoutError:
            return
        for task in [task for task in self._tasks if task.done()]:
            self._tasks.discard(task)
            task.result()

    async def _begin(self, request: Any, carried: Any) -> core.RunState:
        if carried is not None:
            state = core.RunState.model_validate(carried)
            caught = await transact(
                do.CATCH_UP, CatchUp(run_id=state.policy.run_id), state.policy.timing, summary="how the jobs stand"
            )
            self._inbox.extend(caught.news)
            return state
        info = workflow.info()
        resolved = await transact(
            do.RESOLVE_RUN,
            ResolveRun(
                workflow_id=info.workflow_id,
                run_id=UUID(info.first_execution_run_id),
                request=request,
                submitted_at=info.start_time,
            ),
            Timing(),
            summary="validate and resolve",
        )
        if resolved.policy is None:
            raise refusal(InvalidConfiguration(list(resolved.errors)))
        upsert(run_attributes(resolved.policy))
        return core.new_run(resolved.policy, resolved.progress, workflow.now())

    def _may_continue_as_new(self, state: core.RunState) -> bool:
        """Only when nothing is under way: a child started just before would be lost (measured)."""
        long = workflow.info().is_continue_as_new_suggested() or self._signals > MANY_SIGNALS
        quiet = not (state.outstanding or self._tasks or self._inbox or state.unheard or state.notes)
        return long and quiet and workflow.all_handlers_finished()

    # --- what goes out --------------------------------------------------------------------------------------------

    async def _publish(self, state: core.RunState) -> None:
        """Write the projection, and what the Temporal UI shows, if they changed."""
        self._shown = core.view(state)
        workflow.set_current_details(details(state, self._shown))
        if self._shown == self._recorded and not (state.unheard or state.notes):
            return
        before, self._recorded = self._recorded, self._shown
        if before is None or (before.status, before.reason) != (self._shown.status, self._shown.reason):
            upsert(status_attributes(self._shown.status, self._shown.reason))
        await self._record(state, self._shown)

    async def _record(self, state: core.RunState, shown: core.RunView, *, final: bool = False) -> None:
        record = RunRecord(
            run_id=state.policy.run_id,
            status=shown.status,
            reason=shown.reason,
            status_message=shown.message,
            heard=state.unheard,
            notes=state.notes,
            at=workflow.now(),
            final=final,
        )
        await transact(do.RECORD_RUN, record, state.policy.timing, summary=shown.status.value)
        if state.unheard:
            self._inbox.append(happened.Heard(jobs=state.unheard))
        if state.notes:
            self._inbox.append(happened.Noted(number=state.noted))

    async def _close(self, state: core.RunState, close: core.Close) -> dict[str, Any]:
        self._shown = core.RunView(status=close.status, reason=close.reason, message=close.message)
        workflow.set_current_details(details(state, self._shown))
        upsert(status_attributes(close.status, close.reason))
        await self._record(state, self._shown, final=True)
        await workflow.wait_condition(workflow.all_handlers_finished)
        if close.status is RunStatus.FAILED:
            raise ApplicationError(close.message or close.reason.value, type=close.reason.value, non_retryable=True)
        if self._cancelled:
            raise asyncio.CancelledError
        return {"status": close.status.value, "reason": close.reason.value, "message": close.message}

    def _carry_out(self, command: core.Command, state: core.RunState) -> None:
        match command:
            case core.PlaceReplica():
                work = self._place(command, state)
            case core.WithdrawClaim():
                work = self._withdraw(command, state)
            case core.MakeInstance():
                work = self._make(command, state)
            case core.StartJob():
                work = self._start(command, state)
            case core.StopJob():
                work = self._stop_job(command, state)
            case core.ReadCalendar():
                work = self._read_calendar(command, state)
            case _:
                raise AssertionError(f"not for the world: {command.kind}")
        self._tasks.add(asyncio.create_task(work))

    async def _place(self, command: core.PlaceReplica, state: core.RunState) -> None:
        policy = state.policy
        answer = await transact(
            do.CLAIM,
            ClaimRequest(
                claim_id=command.claim_id,
                run_id=policy.run_id,
                project=policy.project,
                owner=workflow.info().workflow_id,
                replica=command.replica,
                submission=command.submission,
                nodes=policy.nodes,
                priority=policy.priority,
                requirements=policy.requirements,
                wait=command.wait,
                idle_duration=policy.idle_duration,
                queue_patience=policy.timing.queue_patience,
                keep=command.keep,
            ),
            policy.timing,
            summary=f"claim {policy.nodes} node(s)",
        )
        known: tuple[Any, ...] = ()
        if answer.again:
            known = await self._known(state, command.replica, command.submission, command.claim_id)
        self._inbox.append(
            happened.Placed(claim_id=command.claim_id, answer=answer, at=workflow.now(), known=known)
        )
        await tell(answer.nudges)

    async def _withdraw(self, command: core.WithdrawClaim, state: core.RunState) -> None:
        ref = ClaimRef(claim_id=command.claim_id, run_id=state.policy.run_id)
        nudges = await transact(do.WITHDRAW_CLAIM, ref, state.policy.timing, summary="give the claim back")
        self._inbox.append(happened.Withdrawn(claim_id=command.claim_id, key=command.key))
        await tell(nudges.nudges)

    async def _make(self, command: core.MakeInstance, state: core.RunState) -> None:
        place, policy = command.placement, state.policy
        await start_instance(
            InstanceInput(
                instance_id=place.instance_id,
                name=place.instance_name,
                project=policy.project,
                timing=policy.timing,
            )
        )
        self._inbox.append(happened.Made(instance_id=place.instance_id, key=command.key))

    async def _start(self, command: core.StartJob, state: core.RunState) -> None:
        policy = state.policy
        key = JobKey(
            run_id=policy.run_id,
            job_id=job_id(policy.run_id, command.replica, command.node, command.submission),
            replica=command.replica,
            node=command.node,
            submission=command.submission,
        )
        job = JobInput(
            key=key,
            project=policy.project,
            run_name=policy.name,
            owner=workflow.info().workflow_id,
            claim_id=command.claim_id,
            instance_id=command.placement.instance_id,
            addresses=command.addresses,
            stop_duration=policy.stop_duration,
            timing=policy.timing,
        )
        known: tuple[Any, ...] = ()
        try:
            child = await workflow.start_child_workflow(
                JOB_WORKFLOW,
                job,
                id=job_workflow_id(policy.run_id, command.replica, command.node, command.submission),
                parent_close_policy=workflow.ParentClosePolicy.ABANDON,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                static_summary=f"{policy.name}: node {command.node} on {command.placement.instance_name}",
                search_attributes=job_attributes(policy),
                priority=workflow.info().priority,
            )
            unheeded(child)
        except WorkflowAlreadyStartedError:
            known = await self._known(state, command.replica, command.submission)
        self._inbox.append(
            happened.Started(
                replica=command.replica,
                node=command.node,
                submission=command.submission,
                key=command.key,
                known=known,
            )
        )

    async def _stop_job(self, command: core.StopJob, state: core.RunState) -> None:
        run_id = state.policy.run_id
        wanted = JobStop(reason=command.reason, abort=command.abort, message=command.message)
        target = job_workflow_id(run_id, command.replica, command.node, command.submission)
        await tell([Nudge(workflow_id=target, news=wanted)])
        self._inbox.append(happened.Stopped(key=command.key))

    async def _read_calendar(self, command: core.ReadCalendar, state: core.RunState) -> None:
        schedule = state.policy.schedule
        assert schedule is not None
        question = CalendarQuestion(schedule=schedule, since=command.since, until=command.until)
        page = await transact(do.READ_CALENDAR, question, state.policy.timing, summary="look at the calendar")
        self._inbox.append(happened.CalendarRead(question=command, page=page, at=workflow.now()))

    async def _known(
        self, state: core.RunState, replica: int, submission: int, claim: UUID | None = None
    ) -> tuple[Any, ...]:
        """What Postgres knows of one submission's jobs: for one that is found, not started, by this execution."""
        request = CatchUp(run_id=state.policy.run_id, replica=replica, submission=submission, claim_id=claim)
        return (await transact(do.CATCH_UP, request, state.policy.timing, summary="how the jobs stand")).news


async def start_instance(instance: InstanceInput) -> None:
    """Start an instance's workflow; one that runs already is the one we want."""
    try:
        child = await workflow.start_child_workflow(
            INSTANCE_WORKFLOW,
            instance,
            id=instance_workflow_id(instance.instance_id),
            parent_close_policy=workflow.ParentClosePolicy.ABANDON,
            static_summary=f"instance {instance.name}",
        )
        unheeded(child)
    except WorkflowAlreadyStartedError:
        workflow.logger.info("instance %s has its workflow already", instance.instance_id)
