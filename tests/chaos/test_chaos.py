"""Two minutes of ``make chaos``, and that its plan is its seed's."""

from __future__ import annotations

import os
from itertools import islice

from tests.chaos import plan
from tests.chaos.__main__ import soak
from tests.chaos.plan import Kind, Part

SEED = int(os.environ.get("CHAOS_SEED") or 31)
MINUTES = float(os.environ.get("CHAOS_MINUTES", "2"))


def test_kills_of_every_part_under_load_break_no_invariant() -> None:
    assert soak(SEED, MINUTES * 60), "its report is above"


def test_a_seed_is_one_plan_and_another_seed_is_another() -> None:
    for make in (plan.work, plan.strikes):
        first, again, other = (list(islice(make(seed), 500)) for seed in (1, 1, 2))
        assert first == again != other


def test_a_plan_has_every_kind_of_run_and_kills_every_part_both_ways() -> None:
    runs, strikes = list(islice(plan.work(SEED), 200)), list(islice(plan.strikes(SEED), 200))
    assert {run.kind for run in runs} == set(Kind)
    assert {run.nodes for run in runs} == {1, 2, 3}
    assert {(strike.part, strike.hard) for strike in strikes} == {(p, h) for p in Part for h in (True, False)}
    assert all(run.stop for run in runs if run.kind is Kind.ENDLESS)
