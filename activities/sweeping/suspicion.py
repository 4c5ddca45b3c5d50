"""What a sweep remembers from one pass to the next: nobody is an orphan at first sight."""

from __future__ import annotations

import time


class Suspicion:
    """Of one worker process. After a restart, or where passes run on several workers, it takes a pass longer."""

    def __init__(self) -> None:
        self._before: dict[str, float] = {}
        self._now: dict[str, float] = {}

    def next_pass(self) -> None:
        self._before, self._now = self._now, {}

    def confirmed(self, subject: str, grace: float) -> bool:
        """Seen in the pass before this one too, and first seen at least ``grace`` seconds ago."""
        first = self._before.get(subject)
        self._now[subject] = time.monotonic() if first is None else first
        return first is not None and time.monotonic() - first >= grace
