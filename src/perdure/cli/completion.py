"""Names for the shell to complete. Whatever goes wrong, there are none: a prompt is no place for an error."""

from __future__ import annotations

from collections.abc import Callable

import typer

PATIENCE = 2.0
"""Seconds that somebody waits after pressing Tab."""


def living_runs(context: typer.Context, incomplete: str) -> list[str]:
    return _names(context, incomplete, "living")


def runs(context: typer.Context, incomplete: str) -> list[str]:
    return _names(context, incomplete, "runs")


def fleets(context: typer.Context, incomplete: str) -> list[str]:
    return _names(context, incomplete, "fleets")


def secrets(context: typer.Context, incomplete: str) -> list[str]:
    return _names(context, incomplete, "secrets")


def profiles(_: typer.Context, incomplete: str) -> list[str]:
    from perdure.client.profiles import names

    try:
        return sorted(name for name in set(names()) if name.startswith(incomplete))
    except Exception:  # noqa: BLE001 - see above
        return []


def words(*known: str) -> Callable[[typer.Context, str], list[str]]:
    """Of a value that is one of a few words."""

    def begun(_: typer.Context, incomplete: str) -> list[str]:
        return [word for word in known if word.startswith(incomplete)]

    return begun


def _names(context: typer.Context, incomplete: str, what: str) -> list[str]:
    import asyncio

    project = context.params.get("project") or "main"
    try:
        found = asyncio.run(asyncio.wait_for(_ask(project, what), PATIENCE))
    except Exception:  # noqa: BLE001 - see above
        return []
    return sorted(name for name in set(found) if name.startswith(incomplete))


async def _ask(project: str, what: str) -> list[str]:
    from perdure.cli import session

    client = await session.connect()
    if what == "fleets":
        return [fleet.name for fleet in await client.fleets(project)]
    if what == "secrets":
        return [secret.name for secret in await client.secrets.list(project)]
    return [run.name for run in await client.list_runs(project, all=what == "runs")]
