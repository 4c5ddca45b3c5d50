"""Runs with a schedule: an occurrence now, a pause, the end of the present occurrence."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from temporalio.client import Client, WorkflowUpdateFailedError, WorkflowUpdateRPCTimeoutOrCancelledError
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from perdure.client.calls import NO_WORKER_HINT, promptly, unreachable
from perdure.client.connection import Place
from perdure.model.api import RunRow
from perdure.model.errors import Conflict
from perdure.model.ids import run_workflow_id
from perdure.model.names import SIGNAL_PAUSE, SIGNAL_RESUME, SIGNAL_STOP, SIGNAL_TRIGGER

PATIENCE = 20.0
"""Seconds in which a worker takes what a run is told; it takes well under one."""


class Schedules:
    """``PerdureClient.schedules``. Each call returns when the run has taken it in.

    Every one raises:
        NotFound: there has never been such a run.
        Conflict: the run has ended or has no schedule, or the present occurrence is in the way, or missing.
        ControlPlaneError: no worker took it within ``PATIENCE``.
    """

    def __init__(self, temporal: Client, place: Place, get_run: Callable[[str, str], Awaitable[RunRow]]):
        self._temporal = temporal
        self._place = place
        self._get_run = get_run

    async def trigger(self, project: str, name: str, by: str) -> None:
        """Begin an occurrence now, also of a schedule that is paused."""
        await self._tell(project, name, SIGNAL_TRIGGER, {"by": by})

    async def pause(self, project: str, name: str, by: str) -> None:
        """Begin no occurrence by the schedule any more. One that is under way goes on."""
        await self._tell(project, name, SIGNAL_PAUSE, {"by": by})

    async def resume(self, project: str, name: str, by: str) -> None:
        """Go on with the schedule."""
        await self._tell(project, name, SIGNAL_RESUME, {"by": by})

    async def stop_occurrence(self, project: str, name: str, by: str, *, abort: bool = False) -> None:
        """Ask the present occurrence to end, gently or at once; the schedule goes on."""
        await self._tell(project, name, SIGNAL_STOP, {"by": by, "abort": abort, "occurrence": True})

    async def _tell(self, project: str, name: str, update: str, said: dict[str, Any]) -> None:
        handle = self._temporal.get_workflow_handle(run_workflow_id(project, name))
        try:
            async with asyncio.timeout(PATIENCE):
                await promptly(self._place, handle.execute_update(update, said))
        except WorkflowUpdateFailedError as error:
            words = error.cause.message if isinstance(error.cause, ApplicationError) else str(error.cause)
            raise Conflict(f"run {name} cannot do that: {words}") from error
        except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError):
            raise self._place.fault(f"no worker has told run {name} of it", hint=NO_WORKER_HINT) from None
        except RPCError as error:
            if error.status is not RPCStatusCode.NOT_FOUND:
                raise unreachable(error, self._place) from error
            run = await self._get_run(project, name)
            raise Conflict(f"run {name} has ended: {run.status}") from error
