"""The layer below flags, configuration and profile: what the fleet adds to a run on it, and what it narrows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic_core import to_jsonable_python

from perdure.model.origins import EffectiveValue, Origin
from perdure.spec.grammar.setting import OFF, Setting
from perdure.spec.models.fleet import FleetConfiguration
from perdure.spec.shown import fitted
from perdure.spec.words import words

_LISTS = ("backends", "regions", "availability_zones", "instance_types")


def under_fleet(
    values: Sequence[EffectiveValue], fleet: FleetConfiguration, name: str
) -> tuple[EffectiveValue, ...]:
    """What is in force for a task on this fleet.

    The shorter idle duration holds, the lower price, what both lists have, and the spot policy of whoever has one.
    A tag of the fleet holds unless the run has it, and a resource the fleet asks for unless the run asks, too.
    """
    return fitted([row for value in values for row in _rows(value, fleet, Origin(layer="fleet", name=name))])


def _rows(value: EffectiveValue, fleet: FleetConfiguration, origin: Origin) -> Iterator[EffectiveValue]:
    if value.path == "tags" and fleet.tags:
        yield from _tags(value, fleet.tags, origin)
        return
    theirs = _theirs(value, fleet, says=value.origin.layer != "default")
    yield value if theirs is None else _replaced(value, theirs, origin.but(path=value.path))


def _theirs(value: EffectiveValue, fleet: FleetConfiguration, *, says: bool) -> Any:
    """What holds instead of the run's, which ``says`` it or has a default; None: nothing else."""
    path, mine = value.path, value.data
    if path == "idle_duration":
        return _shorter(fleet.idle_duration, mine) if says else fleet.idle_duration
    if path in _LISTS:
        return _common(mine, getattr(fleet, path)) if says else getattr(fleet, path)
    if path == "max_price":
        lower = fleet.max_price is not None and (mine is None or fleet.max_price < mine)
        return fleet.max_price if lower else None
    if path == "spot_policy":
        return fleet.spot_policy if mine == "auto" and fleet.spot_policy != "auto" else None
    part = path.removeprefix("resources.")
    written = part != path and not says and part in fleet.resources.model_fields_set
    return getattr(fleet.resources, part) if written else None


def _tags(value: EffectiveValue, tags: dict[str, str], origin: Origin) -> Iterator[EffectiveValue]:
    own: dict[str, str] = value.data or {}
    added = {key: tag for key, tag in tags.items() if key not in own}
    yield _replaced(value, own | added, value.origin if own else origin.but(path="tags")) if added else value
    for key, tag in added.items():
        path = f"tags.{key}"
        yield EffectiveValue(label=f"tags {key}", value=tag, path=path, data=tag, origin=origin.but(path=path))


def _replaced(value: EffectiveValue, data: Any, origin: Origin) -> EffectiveValue:
    said = words(value.path, data)
    return value.but(value=said, data=None if data == OFF else to_jsonable_python(data), origin=origin)


def _shorter(theirs: Setting[int], mine: float | None) -> int | None:
    """The fleet's if it is shorter; the run's None is for ever."""
    if theirs is None or theirs == OFF:
        return None
    return theirs if mine is None or theirs < mine else None


def _common(mine: Sequence[str] | None, theirs: Sequence[str] | None) -> tuple[str, ...] | None:
    """What both have, in any case; None if that is all that the run has."""
    if theirs is None:
        return None
    allowed = {it.lower() for it in theirs}
    kept = tuple(it for it in mine or () if it.lower() in allowed)
    return None if len(kept) == len(mine or ()) else kept
