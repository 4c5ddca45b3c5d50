"""The decisions of a run.

The vocabulary: a **run** has **replicas**; a replica has one **job** a node. Each try of a replica is a
**submission**: first one **claim** for all its nodes, then, when every instance is ready, its jobs.

::

    resting ──► claiming ──► waiting ──► making ──► live ──► over
       ▲            └───────────┴──────────┴─────────┘
       └───────── retry: backoff, next claim or next submission

A run with a **schedule** does this again and again: each **occurrence** has submissions of its own, and is over
when its replicas are; in between, the run is idle (``calendar``).

``apply(state, event)`` takes in what happened, ``decide(state, now)`` says what to do next and when to look again,
``settle`` does both until nothing is left to do at this moment, ``view`` puts the state in words.
"""

from perdure.core.run.apply import apply
from perdure.core.run.commands import (
    Close,
    Command,
    Decision,
    MakeInstance,
    PlaceReplica,
    ReadCalendar,
    StartJob,
    StopJob,
    WithdrawClaim,
)
from perdure.core.run.decide import decide, settle
from perdure.core.run.state import Event, Issued, Placed, RunState, Started, Withdrawn, new_run
from perdure.core.run.view import RunView, view

__all__ = [
    "Close",
    "Command",
    "Decision",
    "Event",
    "Issued",
    "MakeInstance",
    "PlaceReplica",
    "Placed",
    "ReadCalendar",
    "RunState",
    "RunView",
    "StartJob",
    "Started",
    "StopJob",
    "WithdrawClaim",
    "Withdrawn",
    "apply",
    "decide",
    "new_run",
    "settle",
    "view",
]
