"""Durations as people write them, and as they say them."""

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


def duration(seconds: float) -> str:
    """``0.4 s``, ``12 s``, ``3 min``, ``2 h 5 min``, ``4 d``"""
    if seconds < 10:
        return f"{max(seconds, 0):.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = int(seconds // 60)
    if minutes < 120:
        return f"{minutes} min"
    hours = minutes // 60
    if hours < 48:
        return f"{hours} h {minutes % 60} min" if minutes % 60 else f"{hours} h"
    return f"{hours // 24} d"
