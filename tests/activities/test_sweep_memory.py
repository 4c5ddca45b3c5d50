"""What the sweep remembers between its passes."""

from __future__ import annotations

from activities.sweeping.rounds import Rounds
from activities.sweeping.suspicion import Suspicion


def test_every_row_is_looked_at_within_a_few_passes() -> None:
    rounds, rows = Rounds(a_pass=4), list(range(10))
    looked = [rounds.some("jobs", rows) for _ in range(3)]
    assert all(len(once) == 4 for once in looked)
    assert {row for once in looked for row in once} == set(rows)


def test_few_rows_are_all_looked_at_every_time() -> None:
    rounds = Rounds(a_pass=4)
    assert [rounds.some("jobs", [1, 2]) for _ in range(2)] == [[1, 2], [1, 2]]


def test_nothing_is_confirmed_at_first_sight_or_within_its_grace() -> None:
    suspicion = Suspicion()
    assert not suspicion.confirmed("orphan", grace=0.0)
    assert not suspicion.confirmed("orphan", grace=0.0), "twice in one pass is once"
    suspicion.next_pass()
    assert not suspicion.confirmed("orphan", grace=60.0)
    suspicion.next_pass()
    assert suspicion.confirmed("orphan", grace=0.0)


def test_what_was_away_in_between_is_new_again() -> None:
    suspicion = Suspicion()
    suspicion.confirmed("orphan", grace=0.0)
    suspicion.next_pass()
    suspicion.next_pass()
    assert not suspicion.confirmed("orphan", grace=0.0)
