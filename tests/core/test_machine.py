"""Small lives, searched by Hypothesis: things happen in an order of its choosing, whatever their time was to be."""

from __future__ import annotations

import heapq
import random

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from perdure.model.events import StopWanted
from perdure.model.policy import Retry, RunPolicy
from perdure.model.statuses import RetryEvent, StartupOrder, StopCriteria
from tests.core.world import FAULTS, START, Chances, World

EVENTS = st.lists(st.sampled_from(list(RetryEvent)), min_size=1, unique=True).map(tuple)
RETRY = st.none() | st.builds(
    Retry, on=EVENTS, duration=st.sampled_from([0.0, 20.0, 3600.0]), max_attempts=st.sampled_from([None, 1, 2])
)
CHANCES = st.builds(
    Chances,
    capacity=st.sampled_from([0.0, 0.5, 1.0]),
    ready=st.sampled_from([0.0, 1.0]),
    making_fails=st.sampled_from([0.0, 0.5]),
    failure=st.sampled_from([0.0, 0.5]),
    late=st.just(0.0),
    twice=st.sampled_from([0.0, 0.5]),
    run_seconds=st.sampled_from([1.0, 60.0]),
)


class Lives(RuleBasedStateMachine):
    """Of one run."""

    world: World

    @initialize(
        rng=st.randoms(use_true_random=False),
        retry=RETRY,
        chances=CHANCES,
        nodes=st.integers(1, 3),
        order=st.sampled_from(StartupOrder),
        criteria=st.sampled_from(StopCriteria),
    )
    def begin(
        self,
        rng: random.Random,
        retry: Retry | None,
        chances: Chances,
        nodes: int,
        order: StartupOrder,
        criteria: StopCriteria,
    ) -> None:
        policy = RunPolicy(
            run_id="00000000-0000-4000-8000-000000000001",  # type: ignore[arg-type]
            project="main",
            name="small",
            submitted_at=START,
            nodes=nodes,
            startup_order=order,
            stop_criteria=criteria,
            retry=retry,
        )
        faults = FAULTS - {"away", "restart", "reset", "lost"}
        self.world = World(rng, policy, chances, faults, bounded=False)
        self.world.think()

    @precondition(lambda self: self.world.agenda)
    @rule(which=st.integers(0, 5))
    def next(self, which: int) -> None:
        """One of the things that are to happen next."""
        world = self.world
        thing = sorted(world.agenda)[min(which, len(world.agenda) - 1)]
        world.agenda.remove(thing)
        heapq.heapify(world.agenda)
        world.happen(thing)

    @rule()
    def turn(self) -> None:
        self.world.turn()

    @rule(abort=st.booleans())
    def stop(self, abort: bool) -> None:
        self.world.ask(StopWanted(abort=abort))

    @rule()
    def restart(self) -> None:
        self.world.restart()

    @precondition(lambda self: not self.world.closed)
    @rule()
    def reset(self) -> None:
        self.world.reset()
        self.world.think()

    def teardown(self) -> None:
        """In the end every run ends, and nothing is left of it."""
        world = getattr(self, "world", None)
        if world is None:
            return
        world.ask(StopWanted())
        world.run(2000)
        world.oracle.at_rest()


TestLives = Lives.TestCase
TestLives.settings = settings(
    max_examples=300,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
