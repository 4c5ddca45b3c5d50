"""What a run is told: by people, and by other workflows. Handlers only enqueue."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter, ValidationError
from temporalio import workflow
from temporalio.exceptions import ApplicationError

with workflow.unsafe.imports_passed_through():
    from perdure.core import run as core
    from perdure.core.run import state as happened
    from perdure.model.errors import Conflict
    from perdure.model.events import PauseWanted, RunNews, StopWanted, TriggerWanted
    from perdure.model.names import SIGNAL_PAUSE, SIGNAL_RESUME, SIGNAL_STOP, SIGNAL_TELL, SIGNAL_TRIGGER
    from perdure.model.statuses import RunStatus

    NEWS: TypeAdapter[Any] = TypeAdapter(RunNews)


class RunInbox:
    """The signals and updates of a RunWorkflow, each with untyped JSON."""

    def __init__(self) -> None:
        self._inbox: list[happened.Event] = []
        self._signals = 0
        self._shown = core.RunView(status=RunStatus.SUBMITTED)
        self._state: core.RunState | None = None

    @workflow.signal(name=SIGNAL_STOP)
    def stop(self, request: Any = None) -> None:
        self._stop(request, "signal")

    @workflow.update(name=SIGNAL_STOP)
    async def stop_now(self, request: Any = None) -> str:
        """Stop, and say what the run's status then is."""
        self._stop(request, "update")
        return await self._taken_in()

    @stop_now.validator
    def _can_stop(self, request: Any = None) -> None:
        if _mapping(request).get("occurrence") is True and self._calendar().occurrence is None:
            raise _refused("no occurrence is under way")

    @workflow.signal(name=SIGNAL_TRIGGER)
    def trigger(self, request: Any = None) -> None:
        self._take(TriggerWanted(by=str(_mapping(request).get("by", "")), at=workflow.now()))

    @workflow.update(name=SIGNAL_TRIGGER)
    async def trigger_now(self, request: Any = None) -> str:
        """Begin an occurrence of the schedule, and say what the run's status then is."""
        self.trigger(request)
        return await self._taken_in()

    @trigger_now.validator
    def _can_trigger(self, request: Any = None) -> None:
        calendar = self._calendar()
        if calendar.occurrence is not None:
            raise _refused(f"occurrence {calendar.occurrence.number} is under way, and they never overlap")

    @workflow.signal(name=SIGNAL_PAUSE)
    def pause(self, request: Any = None) -> None:
        self._take(PauseWanted(on=True, by=str(_mapping(request).get("by", "")), at=workflow.now()))

    @workflow.update(name=SIGNAL_PAUSE)
    async def pause_now(self, request: Any = None) -> str:
        """Begin no occurrence by the schedule any more, until it is resumed."""
        self.pause(request)
        return await self._taken_in()

    @pause_now.validator
    def _can_pause(self, request: Any = None) -> None:
        self._calendar()

    @workflow.signal(name=SIGNAL_RESUME)
    def resume(self, request: Any = None) -> None:
        self._take(PauseWanted(on=False, by=str(_mapping(request).get("by", "")), at=workflow.now()))

    @workflow.update(name=SIGNAL_RESUME)
    async def resume_now(self, request: Any = None) -> str:
        """Go on with the schedule."""
        self.resume(request)
        return await self._taken_in()

    @resume_now.validator
    def _can_resume(self, request: Any = None) -> None:
        self._calendar()

    @workflow.signal(name=SIGNAL_TELL)
    def tell(self, news: Any = None) -> None:
        self._signals += 1
        try:
            self._inbox.append(NEWS.validate_python(news))
        except ValidationError as error:
            workflow.logger.warning("dropped news that cannot be read: %s", error.errors(include_input=False))

    def _stop(self, request: Any, cause: str) -> None:
        asked = _mapping(request)
        self._take(
            StopWanted(
                abort=asked.get("abort") is True,
                occurrence=asked.get("occurrence") is True,
                by=str(asked.get("by", "")),
                cause=cause,
            )
        )

    def _take(self, event: happened.Event) -> None:
        self._signals += 1
        self._inbox.append(event)

    async def _taken_in(self) -> str:
        """The status once everything that came in has been taken in, and decided on."""
        await workflow.wait_condition(lambda: not self._inbox)
        return self._shown.status.value

    def _calendar(self) -> happened.Calendar:
        """
        Raises:
            ApplicationError: the run has no schedule.
        """
        if self._state is None or self._state.calendar is None:
            raise _refused("the run has no schedule")
        return self._state.calendar


def _mapping(request: Any) -> dict[str, Any]:
    """What somebody sent with a signal: anything that JSON can be."""
    return request if isinstance(request, dict) else {}  # type: ignore[return-value]


def _refused(message: str) -> ApplicationError:
    return ApplicationError(message, type=Conflict.code, non_retryable=True)
