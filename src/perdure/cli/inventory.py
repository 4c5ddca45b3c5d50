"""``perdure offer`` and ``perdure fleet``."""

from __future__ import annotations

from perdure import spec
from perdure.cli.session import with_client
from perdure.cli.tables import failure_table, fleet_table, offer_table
from perdure.cli.terminal import out, print_json, say
from perdure.client.client import PerdureClient
from perdure.model.api import FleetRows
from perdure.model.errors import NotFound


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


def show_fleets(project: str, name: str | None, *, json: bool) -> None:
    async def work(client: PerdureClient) -> None:
        rows = await client.fleets(project)
        if name is not None:
            rows = tuple(fleet for fleet in rows if fleet.name == name)
            if not rows:
                raise NotFound(f"there is no fleet {name} in project {project}", hint="`perdure fleet` lists them")
        if json:
            print_json(rows[0] if name is not None else FleetRows(fleets=rows))
        elif rows:
            out().print(fleet_table(rows))
        else:
            say().print(f"No fleets in project {project}. Begin with: perdure apply -f FLEET.yml")

    with_client(work)
