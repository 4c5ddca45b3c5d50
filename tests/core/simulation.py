"""One seed, one life of a run: drawn, lived, checked, and made smaller when it breaks an invariant."""

from __future__ import annotations

import random
from uuid import UUID

from perdure.model.events import PauseWanted, StopWanted, TriggerWanted
from perdure.model.policy import Retry, RunPolicy
from perdure.model.statuses import RetryEvent, StartupOrder, StopCriteria
from tests.core.minutes import every
from tests.core.world import FAULTS, START, Chances, World

__all__ = ["START", "World", "check", "play"]

STEPS = 150
"""Things that happen to a run before it is stopped, if it has not ended: some would go on for ever."""

SCHEDULED = 60
"""As ``STEPS``, of a run with a schedule: it has no end of its own."""

PATIENCE = 1500
"""Things that may happen after that."""


def play(seed: int, faults: frozenset[str] = FAULTS, *, steps: int = STEPS) -> World:
    """Live one life, checking each step; the last one is in ``World.trace`` also when an invariant breaks."""
    world = draw(seed, faults)
    try:
        world.run(steps if world.policy.schedule is None else min(steps, SCHEDULED))
        if world.closed is None and steps == STEPS:
            world.ask(StopWanted())
            world.run(PATIENCE)
    except AssertionError as error:
        error.add_note(_story(seed, faults, world))
        raise
    return world


def draw(seed: int, faults: frozenset[str]) -> World:
    """A run, and the world it lives in."""
    rng = random.Random(seed)
    chances = Chances(
        capacity=rng.choice((0.1, 0.5, 0.9, 1.0)),
        ready=rng.choice((0.0, 0.5, 1.0)),
        making_fails=rng.choice((0.0, 0.1, 0.5)),
        failure=rng.choice((0.0, 0.2, 0.6)),
        late=rng.choice((0.0, 0.1, 0.4)),
        twice=rng.choice((0.0, 0.2)),
        run_seconds=rng.choice((0.5, 20, 200, 20000)),
    )
    world = World(random.Random(seed), policy(rng), chances, faults)
    for fault in ("stop", "abort"):
        when = int(2 * rng.choice((5, 50, 500)) * rng.random()) / 2
        if world.chance(fault, 0.3):
            occurrence = rng.random() < 0.5 and world.policy.schedule is not None
            stop = StopWanted(abort=fault == "abort", occurrence=occurrence)
            world.after(when, lambda stop=stop: world.ask(stop))
    if world.policy.schedule is not None:
        _visits(world, rng)
    return world


def _visits(world: World, rng: random.Random) -> None:
    """Somebody comes by and pauses, resumes or triggers the schedule."""
    for fault in ("pause", "pause", "trigger", "trigger"):
        when = rng.choice((5, 50, 500, 5000)) * rng.random()
        on = rng.random() < 0.5
        if not world.chance(fault, 0.4):
            continue

        def visit(fault: str = fault, on: bool = on) -> None:
            event = TriggerWanted(at=world.now) if fault == "trigger" else PauseWanted(on=on, at=world.now)
            world.inbox.append(event)

        world.after(when, visit)


def policy(rng: random.Random) -> RunPolicy:
    retry = None
    if rng.random() < 0.7:
        retry = Retry(
            on=tuple(event for event in RetryEvent if rng.random() < 0.7) or (RetryEvent.ERROR,),
            duration=rng.choice((0, 10, 40, 3600, 86400)),
            max_attempts=rng.choice((None, None, 1, 3)),
            backoff=rng.choice(((), (), (1.0, 5.0))),
            on_exit_codes=rng.choice(((), (), ((1, 1),))),
        )
    return RunPolicy(
        run_id=UUID(int=rng.getrandbits(128), version=4),
        project="main",
        name="sim",
        submitted_at=START,
        nodes=rng.choice((1, 1, 2, 3, 4)),
        replicas=rng.choice((1, 1, 1, 2)),
        startup_order=rng.choice(list(StartupOrder)),
        stop_criteria=rng.choice(list(StopCriteria)),
        stop_duration=rng.choice((300.0, 60.0, None)),
        retry=retry,
        schedule=rng.choice((*(None,) * 10, every(1), every(10))),
    )


def check(seed: int) -> None:
    """
    Raises:
        AssertionError: an invariant is broken; with the smallest story that still breaks it.
    """
    try:
        play(seed).oracle.at_rest()
    except AssertionError:
        play(seed, _smallest(seed)).oracle.at_rest()
        raise


def _smallest(seed: int) -> frozenset[str]:
    """The fewest kinds of trouble with which this life still breaks something."""
    faults = FAULTS
    for fault in sorted(FAULTS):
        if _breaks(seed, faults - {fault}):
            faults -= {fault}
    return faults


def _breaks(seed: int, faults: frozenset[str]) -> bool:
    try:
        play(seed, faults).oracle.at_rest()
    except AssertionError:
        return True
    return False


def _story(seed: int, faults: frozenset[str], world: World) -> str:
    lines = [f"seed {seed}, with {', '.join(sorted(faults)) or 'no faults'}: {world.policy}"]
    lines += [f"{(at - START).total_seconds():10.1f} {way} {what!r}" for at, way, what in world.trace[-60:]]
    return "\n".join(lines)
