"""What the stack looks like from outside: for ``perdure status``."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from perdure.backends.local_shims import folders
from perdure.client.room import shortage
from perdure.stack.home import Home


def describe(home: Home) -> list[str]:
    """One line a part: what it is, how it is, where, and since when. Empty if the stack is not up."""
    found = home.running()
    if found is None or not home.locked():
        return []
    lines = [_line(part) for part in found["parts"]]
    for folder in folders(home.path):
        described = folder.read()
        if described is not None:
            state = "ready" if folder.shim() is not None else "down"
            since = datetime.fromtimestamp(folder.description.stat().st_mtime, UTC)
            lines.append(_columns(f"Agent {described['name']}", state, described["address"], since, 0))
    if (full := shortage(home.path)) is not None:
        lines.append(_columns("Disk", "full", full, None, 0))
    lines.append(_columns("Web UI", "ready" if found["up"] else "starting", found["ui"], None, 0))
    return lines


def _line(part: dict[str, Any]) -> str:
    since = datetime.fromisoformat(part["since"]) if part["since"] else None
    return _columns(part["title"], part["state"], part["where"], since, part["restarts"])


def _columns(title: str, state: str, where: str, since: datetime | None, restarts: int) -> str:
    line = f"{title:<16} {state:<9} {where}"
    if since is not None:
        line += f"  since {since.astimezone():%Y-%m-%d %H:%M:%S}"
    if restarts:
        line += f"  started again {restarts} time{'s' if restarts > 1 else ''}"
    return line
