"""``perdure fleet``: list, get, delete."""

from __future__ import annotations

import asyncio
from uuid import UUID

from perdure.cli.session import with_client
from perdure.cli.tables import fleet_table
from perdure.cli.terminal import confirm, out, print_json, say
from perdure.client.client import PerdureClient
from perdure.model.api import FleetRow, FleetRows
from perdure.model.errors import NotFound

LOOK_EVERY = 0.5
"""Seconds."""


def show(project: str, name: str | None, *, json: bool) -> None:
    async def work(client: PerdureClient) -> None:
        rows = (await _one(client, project, name),) if name is not None else await client.fleets(project)
        if json:
            print_json(rows[0] if name is not None else FleetRows(fleets=rows))
        elif rows:
            out().print(fleet_table(rows))
        else:
            say().print(f"No fleets in project {project}. Begin with: perdure apply -f FLEET.yml")

    with_client(work)


def delete(project: str, name: str, *, yes: bool) -> int:
    """The exit code."""

    async def work(client: PerdureClient) -> int:
        fleet = await _one(client, project, name)
        if not yes and not confirm(f"Delete the fleet {name}{_with(fleet)}?"):
            return 0
        await client.delete_fleet(project, name)
        client.be_patient()
        with say().status(f"Deleting the fleet {name} …") as status:
            while (left := await _left(client, project, fleet.fleet_id)) is not None:
                status.update(f"Deleting the fleet {name}{_with(left)} …")
                await asyncio.sleep(LOOK_EVERY)
        say().print(f"Fleet {name} is deleted.")
        return 0

    return with_client(work)


async def _one(client: PerdureClient, project: str, name: str) -> FleetRow:
    for fleet in await client.fleets(project):
        if fleet.name == name:
            return fleet
    raise NotFound(f"there is no fleet {name} in project {project}", hint="`perdure fleet` lists them")


async def _left(client: PerdureClient, project: str, fleet_id: UUID) -> FleetRow | None:
    return next((fleet for fleet in await client.fleets(project) if fleet.fleet_id == fleet_id), None)


def _with(fleet: FleetRow) -> str:
    count, busy = len(fleet.instances), sum(one.status == "busy" for one in fleet.instances)
    if not count:
        return ""
    return f" with its {count} instance{'s' if count > 1 else ''}" + (f", {busy} busy" if busy else "")
