"""Names that both sides of Temporal must agree on."""

from __future__ import annotations

WORKFLOW_QUEUE = "perdure"
IO_QUEUE = "perdure-io"
WATCH_QUEUE = "perdure-watch"

RUN_WORKFLOW = "RunWorkflow"
JOB_WORKFLOW = "JobWorkflow"
INSTANCE_WORKFLOW = "InstanceWorkflow"
FLEET_WORKFLOW = "FleetWorkflow"
SWEEP_WORKFLOW = "SweepWorkflow"
SWEEP_SCHEDULE = "perdure-sweep"

SIGNAL_STOP = "stop"
"""Of a run, from anybody: ``{"abort": bool, "by": str, "occurrence": bool}``. The last: only the present occurrence
of a schedule, which goes on."""

SIGNAL_TRIGGER = "trigger"
SIGNAL_PAUSE = "pause"
SIGNAL_RESUME = "resume"
"""Of a run with a schedule, signals and updates, from anybody: ``{"by": str}``."""

APPLY = "apply"
"""Of a fleet, a signal and an update: its new configuration, a mapping. The update answers when it is in force."""

SIGNAL_TELL = "tell"
"""Of every workflow, from ours: one typed message (``perdure.model.events``)."""

SEARCH_ATTRIBUTES: dict[str, str] = {
    "PerdureProject": "Keyword",
    "PerdureRun": "Keyword",
    "PerdureKind": "Keyword",
    "PerdureStatus": "Keyword",
    "PerdureReason": "Keyword",
    "PerdureUser": "Keyword",
    "PerdureBackend": "Keyword",
    "PerdureReplicas": "Int",
    "PerdurePrice": "Double",
    "PerdureTags": "KeywordList",
}

PRIORITY_PERSON = 1
PRIORITY_NORMAL = 3
PRIORITY_SWEEP = 5
