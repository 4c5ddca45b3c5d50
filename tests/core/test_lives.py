"""A hundred thousand lives of runs, each drawn from a seed, in any order of things and with every kind of trouble.

A seed that breaks an invariant is printed with the least trouble that still breaks it, and the story of it.
``python -m tests.core.test_lives 52 97`` lives these again. Put one that broke into ``KEPT``, together with a test
of the rule, for what a seed means changes with the simulation.
"""

from __future__ import annotations

import sys

import pytest

from tests.core.simulation import check

LIVES, BLOCK = 100_000, 2_000

KEPT = (
    (52, "after a reset, an older claim's failure ended the run that a later claim had jobs of"),
    (97, "after a reset with half of a gang ended, the run heard nothing any more, not even a stop"),
    (735, "a stop right after a reset closed the run over its running jobs"),
    (983, "a failure told twice around a reset started a finished job again"),
    (1950, "an end that was heard before its job was known was dropped, and never told again"),
)


@pytest.mark.parametrize(("seed", "what"), KEPT)
def test_a_life_that_broke_once_holds(seed: int, what: str) -> None:
    check(seed)


@pytest.mark.parametrize("first", range(0, LIVES, BLOCK))
def test_no_order_of_things_breaks_an_invariant(first: int) -> None:
    for seed in range(first, first + BLOCK):
        check(seed)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        check(int(argument))
