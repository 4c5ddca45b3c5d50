"""Durations as people write them."""

from __future__ import annotations

_UNITS = {"w": 604_800, "d": 86_400, "h": 3600, "m": 60, "s": 1}


def in_words(value: float | None) -> str:
    """Seconds as ``5m``, ``1h30m``; ``off`` for None."""
    if value is None:
        return "off"
    if value != int(value) or value == 0:
        return f"{value:g}s"
    left, words = int(value), ""
    for unit, seconds in _UNITS.items():
        amount, left = divmod(left, seconds)
        words += f"{amount}{unit}" if amount else ""
    return words
