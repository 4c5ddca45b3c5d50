"""The story of a run, as a colleague would tell it: what was tried, how long it took, why, and what comes next.

``tell(facts, now)`` is pure. ``facts`` says what it is told from, ``attempts`` tells one submission after the
other, with ``capacity``, ``jobs`` and ``spells`` for its parts, ``outlook`` what will happen.
"""

from perdure.core.story.facts import Claim, Facts, Instance, Job, Place
from perdure.core.story.tell import tell

__all__ = ["Claim", "Facts", "Instance", "Job", "Place", "tell"]
