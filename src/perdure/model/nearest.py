"""Which of the known words was probably meant: a guess, of which people need the first few and nobody all."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from heapq import nsmallest

_LONGEST = 40
"""Characters of a word that is compared: to compare takes the square of them, at least."""

_MOST = 100
"""Words that are compared: those whose length is nearest."""

MOST_HINTS = 10
"""In one answer: where a word is compared with names that users made up, who may have made thousands."""


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known word that is most like this one, if one is like it. Takes milliseconds, whatever is given.

    Args:
        cutoff: how like, from 0 to 1 (that of ``difflib``).
    """
    if len(word) > _LONGEST:
        return None
    short = (other for other in known if len(other) <= _LONGEST)
    near = nsmallest(_MOST, short, key=lambda other: abs(len(other) - len(word)))
    found = get_close_matches(word, near, n=1, cutoff=cutoff)
    return found[0] if found else None
