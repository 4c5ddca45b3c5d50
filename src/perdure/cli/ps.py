"""``perdure ps``."""

from __future__ import annotations

import asyncio

from rich.live import Live
from rich.table import Table

from perdure.cli.session import with_client
from perdure.cli.tables import run_table
from perdure.cli.terminal import out, print_json, say
from perdure.client.client import PerdureClient
from perdure.model.api import RunRow, RunRows

WATCH_EVERY = 1.0
"""Seconds."""


def show(project: str, *, all: bool, watch: bool, number: int | None, json: bool) -> None:
    async def once(client: PerdureClient) -> None:
        rows = await _rows(client, project, all, number)
        if json:
            print_json(RunRows(runs=rows))
        elif not rows:
            say().print(f"No runs in project {project} yet. Begin with: perdure apply -f FILE")
        else:
            out().print(run_table(rows))

    async def again_and_again(client: PerdureClient) -> None:
        with Live(console=out(), auto_refresh=False, screen=out().is_terminal) as live:
            while True:
                rows = await _rows(client, project, all, number)
                client.be_patient()
                live.update(run_table(rows) if rows else Table.grid(), refresh=True)
                await asyncio.sleep(WATCH_EVERY)

    with_client(again_and_again if watch and not json else once)


async def _rows(client: PerdureClient, project: str, all: bool, number: int | None) -> tuple[RunRow, ...]:
    """What has not ended; if nothing, the last one that has."""
    wanted = all or number is not None
    rows = await client.list_runs(project, all=wanted, limit=number or 100)
    if rows or wanted:
        return rows
    return await client.list_runs(project, all=True, limit=1)
