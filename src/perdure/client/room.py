"""Whether there is room where the embedded stack keeps its state: without it nothing it does can be relied on."""

from __future__ import annotations

import shutil
from pathlib import Path

LEAST_FREE = 64 * 1024**2
"""Bytes. Below this neither Postgres nor Temporal could begin, and what runs may stop at any write."""

HINT = "make room there; what waits for it goes on by itself"


def shortage(folder: Path) -> str | None:
    """That the disk of ``folder`` is full, in one sentence; None if it is not, or cannot be asked."""
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return None
    return None if free >= LEAST_FREE else f"the disk of {folder} is full: {free // 1024**2} MB left"
