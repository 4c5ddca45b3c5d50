"""A hundred thousand lives of runs, each drawn from a seed, in any order of things and with every kind of trouble.

A seed that breaks an invariant is printed with the least trouble that still breaks it, and the story of it.
``python -m tests.core.test_lives 52 97`` lives these again. What one finds is kept as a test of the rule, as in
``test_resets``: what a seed means changes with the simulation.
"""

from __future__ import annotations

import sys

import pytest

from tests.core.simulation import check

LIVES, BLOCK = 100_000, 2_000


@pytest.mark.parametrize("first", range(0, LIVES, BLOCK))
def test_no_order_of_things_breaks_an_invariant(first: int) -> None:
    for seed in range(first, first + BLOCK):
        check(seed)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        check(int(argument))
