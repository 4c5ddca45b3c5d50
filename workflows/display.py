"""What the Temporal UI and lists show of a run: search attributes, and its state as Markdown."""

from __future__ import annotations

from typing import Any

from temporalio import workflow
from temporalio.common import SearchAttributeKey, SearchAttributePair, SearchAttributeUpdate, TypedSearchAttributes

with workflow.unsafe.imports_passed_through():
    from perdure.core import run as core
    from perdure.model.policy import RunPolicy
    from perdure.model.statuses import RunReason, RunStatus

PROJECT = SearchAttributeKey.for_keyword("PerdureProject")
RUN = SearchAttributeKey.for_keyword("PerdureRun")
KIND = SearchAttributeKey.for_keyword("PerdureKind")
STATUS = SearchAttributeKey.for_keyword("PerdureStatus")
REASON = SearchAttributeKey.for_keyword("PerdureReason")
USER = SearchAttributeKey.for_keyword("PerdureUser")
REPLICAS = SearchAttributeKey.for_int("PerdureReplicas")


def job_attributes(policy: RunPolicy) -> TypedSearchAttributes:
    """Of a job's workflow."""
    return TypedSearchAttributes(
        [
            SearchAttributePair(PROJECT, policy.project),
            SearchAttributePair(RUN, policy.name),
            SearchAttributePair(KIND, "job"),
            SearchAttributePair(USER, policy.user),
        ]
    )


def run_attributes(policy: RunPolicy) -> list[SearchAttributeUpdate[Any]]:
    """Of a run's workflow, as far as they never change."""
    return [
        PROJECT.value_set(policy.project),
        RUN.value_set(policy.name),
        KIND.value_set(policy.kind),
        USER.value_set(policy.user),
        REPLICAS.value_set(policy.replicas),
    ]


def status_attributes(status: RunStatus, reason: RunReason | None) -> list[SearchAttributeUpdate[Any]]:
    """What changes as a run goes on."""
    updates: list[SearchAttributeUpdate[Any]] = [STATUS.value_set(status.value)]
    if reason is not None:
        updates.append(REASON.value_set(reason.value))
    return updates


def details(state: core.RunState, shown: core.RunView) -> str:
    """The run as Markdown: one sentence, then a table of its jobs."""
    lines = [f"**{shown.status.value}**" + (f" ({shown.reason.value})" if shown.reason else "")]
    if shown.message:
        lines.append(shown.message)
    rows = [
        f"| {replica.num} | {job.node} | {replica.submission} | {job.status.value} | "
        f"{job.reason.value if job.reason else ''} | {'' if job.exit_status is None else job.exit_status} | "
        f"{job.placement.instance_name or job.placement.instance_id} |"
        for replica in state.replicas
        for job in replica.jobs
    ]
    if rows:
        head = "| replica | node | submission | status | reason | exit | instance |\n|---|---|---|---|---|---|---|"
        lines.append("\n".join([head, *rows]))
    return "\n\n".join(lines)
