"""Whether a workflow is still there. Asked by its id, never from a list, which lags behind."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from uuid import UUID

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.service import RPCError, RPCStatusCode

AT_ONCE = 20
"""Descriptions asked for at the same time: 3 ms each when idle, and never a burst."""


_CLOSED = frozenset(
    {
        WorkflowExecutionStatus.COMPLETED,
        WorkflowExecutionStatus.FAILED,
        WorkflowExecutionStatus.CANCELED,
        WorkflowExecutionStatus.TIMED_OUT,
    }
)


class Standing(StrEnum):
    OPEN = "open"
    CLOSED = "closed"
    TERMINATED = "terminated"
    """Closed by force, in Temporal: it could not clean up."""

    ABSENT = "absent"
    """Temporal does not know it: not started yet, or kept no longer, or this is another Temporal. Not "closed"."""

    @property
    def over(self) -> bool:
        return self in (Standing.CLOSED, Standing.TERMINATED)


class Owners:
    """The standing of workflows, each asked once."""

    def __init__(self, client: Client):
        self._client = client
        self._gate = asyncio.Semaphore(AT_ONCE)
        self._asked: dict[tuple[str, UUID | None], asyncio.Task[Standing]] = {}

    async def standing(self, workflow_id: str, chain: UUID | None = None) -> Standing:
        """``chain``: the run id that the workflow began with. A later workflow of the same id is not it: the one
        asked about is gone, and by force, if its row is not final."""
        key = (workflow_id, chain)
        if key not in self._asked:
            self._asked[key] = asyncio.create_task(self._describe(workflow_id, chain))
        return await self._asked[key]

    async def _describe(self, workflow_id: str, chain: UUID | None) -> Standing:
        async with self._gate:
            try:
                found = await self._client.get_workflow_handle(workflow_id).describe()
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise
                return Standing.ABSENT
        first = found.raw_description.workflow_execution_info.first_run_id
        if chain is not None and first and UUID(first) != chain:
            return Standing.TERMINATED
        if found.status is WorkflowExecutionStatus.TERMINATED:
            return Standing.TERMINATED
        return Standing.CLOSED if found.status in _CLOSED else Standing.OPEN
