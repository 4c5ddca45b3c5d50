"""``perdure offer``."""

from __future__ import annotations

from perdure import spec
from perdure.cli.session import with_client
from perdure.cli.tables import failure_table, offer_table
from perdure.cli.terminal import out, print_json, say
from perdure.client.client import PerdureClient


def show_offers(project: str, resources: str | None, limit: int, *, json: bool) -> None:
    requirements = spec.load_yaml(f"resources: {{{resources}}}", "--resources") if resources else {}

    async def work(client: PerdureClient) -> None:
        rows = await client.offers(project, requirements, limit=limit)
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

    with_client(work)
