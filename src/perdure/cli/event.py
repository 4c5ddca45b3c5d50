"""``perdure event``."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

from rich.text import Text

from perdure.cli.session import with_client
from perdure.cli.terminal import out, print_json, say, visible
from perdure.cli.words import STYLES
from perdure.client.client import PerdureClient
from perdure.model.api import EventQuery, EventRow, EventRows
from perdure.model.errors import UserError
from perdure.spec.grammar.lifecycle import moment_or_duration


def show(
    project: str, about: tuple[str, str] | None, *, since: str | None, limit: int, watch: bool, json: bool
) -> None:
    """``about``: an option, such as ``within-run``, and the name it is given."""
    scope, _, kind = about[0].partition("-") if about else ("", "", "")
    query = EventQuery.model_validate(
        {
            "project": project,
            "since": time_of(since) if since is not None else None,
            "limit": limit,
            "kind": kind or None,
            "name": about[1] if about else "",
            "within": scope == "within",
        }
    )

    async def once(client: PerdureClient) -> None:
        rows = await client.events.list(query)
        if json:
            print_json(EventRows(events=rows))
            return
        for row in rows:
            _print(row)
        if not rows:
            of = f" of {kind} {about[1]}" if about else ""
            say().print(f"No events{of} in project {project}" + (" since then." if since else "."), markup=False)

    async def on_and_on(client: PerdureClient) -> None:
        async for row in client.events.follow(query):
            client.be_patient()
            if json:
                sys.stdout.write(row.model_dump_json() + "\n")
                sys.stdout.flush()
            else:
                _print(row)

    with_client(on_and_on if watch else once)


def time_of(text: str, now: datetime | None = None) -> datetime:
    """``10m`` (that long ago), or a moment with its zone.

    Raises:
        UserError: it is neither.
    """
    try:
        moment = moment_or_duration(text)
    except ValueError as error:
        raise UserError(f"--since {error}", hint="write 10m, 2h, 1d, or 2026-12-31T18:00:00Z") from None
    if isinstance(moment, datetime):
        return moment
    return (now or datetime.now(UTC)) - timedelta(seconds=moment)


def _print(row: EventRow) -> None:
    """``[time here] [who] [what, …] sentence``"""
    targets = ", ".join(f"{it.kind} {it.name or it.id}" for it in row.targets)
    line = Text(f"[{row.at.astimezone():%Y-%m-%d %H:%M:%S}] ", "dim")
    line.append(f"[{visible(row.actor.removeprefix('user '))}] ")
    line.append(f"[{visible(targets)}] ", "dim")
    line.append(visible(row.message), STYLES.get(row.status or "", "") if row.before != row.status else "")
    out().print(line, soft_wrap=True)
