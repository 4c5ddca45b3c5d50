"""One pass of the sweep: find what nobody owns, and tell again what nobody heard."""

from __future__ import annotations

from temporalio import workflow

from workflows.calls import start, tell
from workflows.run import start_instance

with workflow.unsafe.imports_passed_through():
    from perdure.model import activities as do
    from perdure.model.messages import Nothing
    from perdure.model.names import PRIORITY_SWEEP, SWEEP_WORKFLOW
    from perdure.model.timing import Timing

TIMING = Timing()


@workflow.defn(name=SWEEP_WORKFLOW)
class SweepWorkflow:
    @workflow.run
    async def run(self) -> list[str]:
        found = await start(
            do.SWEEP, Nothing(), TIMING, limit=10 * TIMING.activity, summary="look", priority=PRIORITY_SWEEP
        )
        for finding in found.findings:
            if finding.start_instance is not None:
                await start_instance(finding.start_instance)
            await tell(finding.nudges)
        words = [f"{finding.kind}: {finding.message}" for finding in found.findings]
        workflow.set_current_details("\n".join(words[:100]) or "nothing found")
        return words[:100]
