"""``perdure apply`` of a fleet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from rich.table import Table
from rich.text import Text

from perdure.cli.session import with_client
from perdure.cli.terminal import confirm, say, visible
from perdure.cli.written import Written
from perdure.client.client import PerdureClient, user_name
from perdure.model.errors import Conflict, FieldError, InvalidConfiguration, UserError
from perdure.model.ids import RESOURCE_NAME


def apply(written: Written, project: str, *, yes: bool) -> int:
    """The exit code."""
    document = _configuration(written)
    name: str = document["name"]

    async def work(client: PerdureClient) -> int:
        before = next((fleet for fleet in await client.fleets(project) if fleet.name == name), None)
        if before is not None and before.status == "terminating":
            raise Conflict(f"fleet {name} is being deleted", hint="apply it again when it is gone")
        changes = _changes(before.configuration if before else {}, document)
        if before is not None and not changes:
            say().print(f"Fleet {name} is so already.")
            return 0
        _show(name, changes, new=before is None)
        if not yes and not confirm(f"{'Change' if before else 'Make'} the fleet {name}?"):
            return 0
        new = await client.apply_fleet(project, name, document, user_name())
        await client.fleet_recorded(project, name, document)
        say().print(f"Fleet {name} is {'made' if new else 'changed'}; `perdure fleet` shows its instances.")
        return 0

    return with_client(work)


def _configuration(written: Written) -> dict[str, Any]:
    """With its name, and what it takes from the profile.

    Raises:
        UserError: flags say something of a fleet.
        InvalidConfiguration: it has no name.
    """
    others = [flag for path, flag in written.flags.names.items() if path != "name"]
    if others:
        raise UserError(f"{others[0]} is for runs", hint="a fleet is what its configuration says; write it there")
    configuration = {**written.merged, **written.flags.mapping}
    if not RESOURCE_NAME.match(str(configuration.get("name", ""))):
        hint = "1 to 41 of a-z, 0-9 and -; a letter first"
        raise InvalidConfiguration([FieldError(path="name", message="a fleet needs a name", hint=hint)])
    return configuration


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """(what, as it is, as it will be), in the order of the new configuration, then what is left out of it."""
    keys = [*after, *(key for key in before if key not in after)]
    return [(key, before.get(key), after.get(key)) for key in keys if before.get(key) != after.get(key)]


def _show(name: str, changes: list[tuple[str, Any, Any]], *, new: bool) -> None:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_row("Fleet", Text(f"{name}, {'new' if new else 'changed'}"))
    for key, old, coming in changes:
        if key not in ("type", "name"):
            words = _words(coming) if new else f"{_words(old)} → {_words(coming)}"
            grid.add_row(key[:1].upper() + key[1:].replace("_", " "), Text(words))
    say().print(grid)


def _words(value: Any) -> str:
    """``cpu=2.. gpu=H100:8``, ``a, b``; ``nothing`` for what is not written: its default holds."""
    if value is None or value in ([], {}):
        return "nothing"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, list):
        return ", ".join(_part(item) for item in cast(list[Any], value))
    if not isinstance(value, dict):
        return visible(str(value))
    parts = cast(dict[str, Any], value)
    if {*parts} <= {"min", "max"}:
        least, most = ("" if parts.get(end) is None else parts[end] for end in ("min", "max"))
        return f"{least}..{most}"
    return " ".join(f"{key}={_part(part)}" for key, part in parts.items())


def _part(value: Any) -> str:
    """Of a whole: what has parts itself is put in brackets."""
    words = _words(value)
    return f"({words})" if isinstance(value, dict | list) and " " in words else words
