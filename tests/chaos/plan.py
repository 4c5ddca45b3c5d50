"""What a soak does, decided by its seed alone: who submits what, what is stopped, what is killed, in which order.

Both plans are endless, and are followed until the time is over. A slow machine comes less far along them; what
comes, and in which order, is the same on every machine.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a run does, and with it how it must end."""

    COUNTS = "counts"
    """Every node prints its lines, and exits with 0."""

    CRASHES = "crashes"
    """One node exits with a status of its own, and the run has no retry."""

    RETRIES = "retries"
    """One node fails a few times, and then does not."""

    GIVES_UP = "gives up"
    """One node fails as often as ``max_attempts`` lets it."""

    OVERRUNS = "overruns"
    """It does not end before its ``max_duration``."""

    ENDLESS = "is stopped"
    """It ends only because a client stops it."""

    REFUSED = "is refused"
    """Its configuration can never be right."""


class OnTerm(StrEnum):
    """What a job does when it is asked to end."""

    DIES = "dies"
    SAVES = "saves"
    """Prints one more line, and exits with 0."""

    IGNORES = "ignores it"


@dataclass(frozen=True)
class Stop:
    """A client's stop. Seconds from when the run was submitted; ``abort_after`` is a second one, later still."""

    after: float
    abort: bool = False
    cancel: bool = False
    """By Temporal's own Cancel, which is a graceful stop."""

    abort_after: float | None = None


@dataclass(frozen=True)
class Work:
    """One run."""

    name: str
    kind: Kind
    after: float
    """Seconds from the submission before."""

    nodes: int
    lines: int
    """Printed by each node at each of its starts, ``pace`` seconds apart."""

    pace: float
    code: int = 0
    """With which the failing node exits."""

    failures: int = 0
    failing_node: int = 0
    on_term: OnTerm = OnTerm.DIES
    idle: int = 300
    """Seconds that an instance made for it outlives its last job."""

    stop: Stop | None = None


class Part(StrEnum):
    WORKER = "worker"
    TEMPORAL = "temporal"
    POSTGRES = "postgres"
    SHIM = "shim"
    RUNNER = "runner"
    STACK = "stack"
    """All of these but runners, and the supervisor first; or, with SIGTERM, it alone, which then stops the others.
    Somebody then types ``perdure up``."""

    @property
    def of_the_stack(self) -> bool:
        """Kept by the supervisor, one of each."""
        return self in (Part.WORKER, Part.TEMPORAL, Part.POSTGRES)


@dataclass(frozen=True)
class Strike:
    """One kill."""

    part: Part
    hard: bool
    """SIGKILL; otherwise SIGTERM."""

    after: float
    """Seconds from the strike before."""

    pick: int
    """Which of those there are, modulo their number."""

    patient: bool
    """Waits until every part is ready. Others fall on whatever is there, also in the middle of a start."""


LONGEST = 10**6
"""Lines of a job that does not end by itself."""


def work(seed: int) -> Iterator[Work]:
    """Every run, in order."""
    dice = random.Random(f"{seed} work")
    number = 0
    while True:
        number += 1
        yield _one(dice, number)


def _one(dice: random.Random, number: int) -> Work:
    kinds = {
        Kind.COUNTS: 10,
        Kind.CRASHES: 3,
        Kind.RETRIES: 5,
        Kind.GIVES_UP: 2,
        Kind.OVERRUNS: 2,
        Kind.ENDLESS: 5,
        Kind.REFUSED: 2,
    }
    kind = dice.choices(list(kinds), list(kinds.values()))[0]
    nodes = dice.choices((1, 2, 3), (6, 2, 1))[0]
    endless = kind in (Kind.OVERRUNS, Kind.ENDLESS)
    fails = kind in (Kind.CRASHES, Kind.RETRIES, Kind.GIVES_UP)
    stopped = kind is Kind.ENDLESS or dice.random() < 0.1
    return Work(
        name=f"soak-{number}",
        kind=kind,
        after=dice.choice((0.0, 0.0, dice.uniform(0, 3), dice.uniform(0, 6))),
        nodes=nodes,
        lines=LONGEST if endless else dice.randint(0, 30),
        pace=dice.choice((0.05, 0.2, 0.4)),
        code=dice.choice((1, 2, 3, 42, 127, 255)) if fails else 0,
        failures=dice.randint(1, 2) if fails else 0,
        failing_node=dice.randrange(nodes),
        on_term=dice.choice(list(OnTerm)),
        idle=dice.choice((2, 15, 300)),
        stop=_stop(dice) if stopped else None,
    )


def _stop(dice: random.Random) -> Stop:
    after = dice.choice((0.0, dice.uniform(0, 2), dice.uniform(2, 12)))
    if dice.random() < 0.25:
        return Stop(after, abort=True)
    abort_after = after + dice.uniform(0, 2) if dice.random() < 0.25 else None
    return Stop(after, cancel=dice.random() < 0.25, abort_after=abort_after)


def strikes(seed: int) -> Iterator[Strike]:
    """Every kill, in order."""
    dice = random.Random(f"{seed} strikes")
    while True:
        yield Strike(
            part=dice.choices(list(Part), [1 if part is Part.STACK else 4 for part in Part])[0],
            hard=dice.random() < 0.6,
            after=dice.uniform(2, 7) if dice.random() < 0.8 else 0.0,
            pick=dice.randrange(2**16),
            patient=dice.random() < 0.75,
        )
