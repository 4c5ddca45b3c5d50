"""``perdure offer``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perdure.cli.documents import Source
from perdure.cli.flags import Given
from perdure.cli.session import with_client
from perdure.cli.tables import failure_table, offer_table
from perdure.cli.terminal import out, print_json, say
from perdure.cli.written import Written, Wrong, loaded, profile_that_holds
from perdure.client.client import PerdureClient

ANYTHING = {"type": "task", "commands": ["true"]}
"""A run that asks for nothing by itself."""

OF_MACHINES = (
    "resources",
    "fleets",
    "backends",
    "regions",
    "availability_zones",
    "instance_types",
    "reservation",
    "spot_policy",
    "max_price",
    "creation_policy",
)
"""Fields that say which offers would do."""


def show_offers(
    project: str,
    resources: str | None,
    flags: Given,
    limit: int,
    *,
    profile: str | None,
    no_profile: bool,
    json: bool,
) -> int:
    """The exit code."""
    try:
        wanted = _wanted(resources or "", flags, profile, no_profile)
    except Wrong as wrong:
        return wrong.tell(json=json)

    async def work(client: PerdureClient) -> None:
        rows = await client.offers(project, wanted, limit=limit)
        if json:
            print_json(rows)
            return
        if rows.offers:
            out().print(offer_table(rows.offers))
            if rows.total > len(rows.offers):
                say().print(f"  {len(rows.offers)} of {rows.total} shown", style="dim")
        else:
            say().print("No offers.", style="bold yellow")
        if rows.failures:
            out().print(failure_table(rows.failures))
        elif not rows.offers:
            say().print("  No fleet was asked; `perdure fleet` shows what there is.", style="dim")

    with_client(work)
    return 0


def _wanted(resources: str, flags: Given, profile: str | None, no_profile: bool) -> dict[str, Any]:
    """
    Raises:
        Wrong: something is not right.
    """
    source = Source("--resources", Path.cwd(), f"resources: {{{resources}}}".encode())
    document = loaded(source)
    document.update(ANYTHING)
    written = Written(source, document, flags, profile_that_holds(profile, no_profile=no_profile))
    with written.explained():
        written.check()
    return {name: written.merged[name] for name in OF_MACHINES if name in written.merged}
