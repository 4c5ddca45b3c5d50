"""Small change of the story's language."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from perdure.model.durations import duration

_ELSEWHERE = re.compile(r"; [0-9]+ more in `perdure run get [^`]*`")


def listed(words: Sequence[str], most: int = 4) -> str:
    """``a``, ``a and b``, ``a, b and c``, ``a, b, c and 9 more``"""
    if len(words) > most:
        words = [*words[: most - 1], f"{len(words) - most + 1} more"]
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)


def counted(count: int, what: str) -> str:
    """``1 node``, ``3 nodes``; ``try`` has ``tries``."""
    if count == 1:
        return f"1 {what}"
    return f"{count} {what[:-1]}ies" if what.endswith("y") else f"{count} {what}s"


def lasting(begin: datetime, end: datetime) -> str:
    return duration((end - begin).total_seconds())


def by(time: datetime, now: datetime) -> str:
    """``in 12 min (11:31:02 UTC)``"""
    if time <= now:
        return "any moment now"
    day = "" if time.date() == now.date() else f"{time:%d %b} "
    return f"in {lasting(now, time)} ({day}{time:%H:%M:%S} UTC)"


def every(count: int, what: str = "") -> str:
    """``it``, ``both nodes``, ``all 3 nodes``"""
    if count == 1:
        return "it"
    return f"{'both' if count == 2 else f'all {count}'} {what}".strip()


def clause(text: str) -> str:
    """Without the full stop, and without where to find what the story tells anyway."""
    return _ELSEWHERE.sub("", text.strip().rstrip("."))


def sentence(text: str) -> str:
    """With a capital and a full stop."""
    text = stopped(text)
    return text[:1].upper() + text[1:]


def stopped(text: str) -> str:
    """With a full stop."""
    text = text.strip()
    return text if not text or text.endswith((".", "!", "?")) else f"{text}."
