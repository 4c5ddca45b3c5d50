"""Every value in force, in words and where it comes from: for plans and ``--explain``, of any kind.

A value that is decided by parts (``resources``, ``env``, ``tags``, ``retry``) has one row for the whole, followed
by one for each part, whose path has a dot. Nothing secret is shown: of variables and logins only the names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from perdure.model.origins import EffectiveValue, Origin
from perdure.spec.defaults import ALWAYS, FIRST, LABELS, OF_AN_IMAGE, Said, default_of
from perdure.spec.grammar.base import is_mapping
from perdure.spec.grammar.setting import OFF
from perdure.spec.layers import Layered
from perdure.spec.models.fleet import FleetConfiguration
from perdure.spec.models.run import RunFields
from perdure.spec.requirements import resources_of
from perdure.spec.words import UNSET, words

_PARTS = ("resources", "env", "tags", "retry")
_UNTOLD = frozenset(("registry_auth", "probes", "notify", "repos", "commands", "init", "setup"))
"""Fields whose value is not repeated: it may hold what is no business of a plan's reader, or is long."""

_MOST_DATA = 2048
"""Characters of a value as JSON: a plan travels through Temporal."""

_MOST_PARTS = 100

MOST_BYTES = 48 * 1024
"""Of all rows as JSON: with the rest of a plan they stay under what a payload may have, 64 KiB."""

_MORE = "more"
"""Label of the last row, if there are more than may travel."""


def effective_values(
    configuration: BaseModel,
    layered: Layered,
    *,
    before: Sequence[EffectiveValue] = (),
    known: Mapping[str, object] | None = None,
) -> tuple[EffectiveValue, ...]:
    """One by one, in the order in which a plan shows them; defaults are in.

    Args:
        configuration: of any kind, with all layers in it.
        before: rows of what no field says.
        known: by field, what is in force where the configuration leaves it open (else the language's default).
    """
    kind = str(getattr(configuration, "type", ""))
    of_image = isinstance(configuration, RunFields) and configuration.image is not None
    known = {**(OF_AN_IMAGE if of_image else {}), **(known or {})}
    rows: list[EffectiveValue] = [*before]

    def in_force(path: str, value: object) -> object:
        if value is not None and value != ():
            return value
        return known.get(path, default_of(kind, path, value))

    for name in _ordered(type(configuration).model_fields):
        written: object = getattr(configuration, name)
        if name == "resources" and isinstance(configuration, RunFields | FleetConfiguration):
            written = resources_of(configuration)
        rows += _rows(name, in_force(name, written), layered, in_force)
    return fitted(rows)


def fitted(rows: Sequence[EffectiveValue]) -> tuple[EffectiveValue, ...]:
    """As many rows as may travel, in their order, and a last one that says how many more there are.

    Fields come before their parts; where the room ends, what they hold is left to the words.
    """
    more = sum(row.data for row in rows if row.label == _MORE)
    rows = [row for row in rows if row.label != _MORE]
    left, kept = MOST_BYTES, dict[int, EffectiveValue]()
    for index in sorted(range(len(rows)), key=lambda index: "." in rows[index].path):
        for row in (rows[index], rows[index].but(data=None)):
            size = len(row.model_dump_json().encode())
            if size <= left:
                left -= size
                kept[index] = row
                break
    more += len(rows) - len(kept)
    shown = tuple(kept[index] for index in sorted(kept))
    return (*shown, EffectiveValue(label=_MORE, value=f"{more} more values", data=more)) if more else shown


def brief(values: Iterable[EffectiveValue]) -> tuple[EffectiveValue, ...]:
    """What an ordinary plan shows: whatever somebody wrote, and the defaults that everybody should know."""
    return tuple(
        one
        for one in values
        if "." not in one.path
        and (one.path in ALWAYS or (one.origin.layer != "default" and one.value != UNSET))
        and one.path != "name"
    )


def _ordered(fields: Iterable[str]) -> list[str]:
    rank = {name: index for index, name in enumerate(FIRST)}
    return sorted(fields, key=lambda name: rank.get(name, len(FIRST)))


def _rows(
    name: str, value: object, layered: Layered, in_force: Callable[[str, object], object]
) -> Iterator[EffectiveValue]:
    yield _row(name, LABELS.get(name, name.replace("_", " ")), words(name, value), value, layered)
    if name not in _PARTS:
        return
    parts = list(_parts(value))
    for key, written in parts[:_MOST_PARTS]:
        path, part = f"{name}.{key}", in_force(f"{name}.{key}", written)
        label = f"{LABELS.get(name, name)} {key if name == 'env' else key.replace('_', ' ')}"
        yield _row(path, label, words(path, part), part, layered)
    if len(parts) > _MOST_PARTS:
        yield EffectiveValue(label=f"more {name}", value=f"{len(parts) - _MOST_PARTS} more", path=f"{name}.")


def _parts(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, BaseModel):
        yield from ((key, getattr(value, key)) for key in type(value).model_fields)
    elif is_mapping(value):
        yield from value.items()


def _row(path: str, label: str, said: str, value: object, layered: Layered) -> EffectiveValue:
    origin = layered.origin(path)
    outer = path.partition(".")[0]
    if outer in ("resources", "retry") and path != outer and path not in layered.origins:
        origin = Origin()  # a part that was left out is a default, whoever wrote the rest
    if isinstance(value, Said):
        said = str(value)
    data = None if outer in _UNTOLD or path.startswith("env.") else _data(outer, value)
    return EffectiveValue(label=label, value=said, path=path, origin=origin, data=data)


def _data(name: str, value: object) -> Any:
    """As JSON; off is null, and so is what is too long."""
    if name == "env" and is_mapping(value):
        value = list(value)
    found = None if value == OFF or isinstance(value, Said) else to_jsonable_python(value)
    return found if len(json.dumps(found)) <= _MOST_DATA else None
