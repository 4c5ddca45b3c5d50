"""Times, sizes and statuses in words."""

from __future__ import annotations

from datetime import UTC, datetime

from perdure.model.durations import duration

STYLES = {
    "running": "bold green",
    "done": "green",
    "failed": "bold red",
    "aborted": "red",
    "terminated": "yellow",
    "terminating": "yellow",
    "pulling": "cyan",
    "provisioning": "cyan",
    "submitted": "cyan",
    "pending": "cyan",
    "idle": "green",
    "busy": "bold green",
}


def ago(time: datetime, now: datetime | None = None) -> str:
    """``3 min ago``"""
    seconds = ((now or datetime.now(UTC)) - time).total_seconds()
    return "now" if seconds < 1 else f"{duration(seconds)} ago"


def size(count: float) -> str:
    """``812 B``, ``1.5 kB``, ``3.2 GB``: powers of 1000."""
    if count < 1000:
        return f"{count:.0f} B"
    for unit in ("kB", "MB", "GB"):
        count /= 1000
        if count < 1000:
            return f"{count:.1f} {unit}"
    return f"{count / 1000:.1f} TB"


def price(dollars: float) -> str:
    """Of an hour."""
    return "free" if dollars == 0 else f"${dollars:.4f}".rstrip("0").rstrip(".")
