"""Which configuration a mapping is, and its model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias, cast

from perdure.model.errors import InvalidConfiguration
from perdure.spec.checking import check, field_error, lines_of, nearest, source_of
from perdure.spec.document import Lines
from perdure.spec.grammar.base import told
from perdure.spec.models.fleet import FleetConfiguration
from perdure.spec.models.run import Task

RunConfiguration: TypeAlias = Task

RUN_TYPES: dict[str, type[RunConfiguration]] = {"task": Task}
TYPES = ("dev-environment", "task", "service", "fleet", "volume", "gateway", "preset")


def parse_run(mapping: object, lines: Lines | None = None) -> RunConfiguration:
    """A run's configuration as written.

    Raises:
        InvalidConfiguration: with every mistake.
    """
    found = _typed(mapping, lines)
    model = RUN_TYPES.get(found)
    if model is None:
        raise _refused(mapping, lines, f"is {found!r}, which is not a run", "a run is a task")
    return check(model, cast(Mapping[str, object], mapping), lines or lines_of(mapping))


def parse_fleet(mapping: object, lines: Lines | None = None) -> FleetConfiguration:
    """A fleet's configuration as written, checked for what it cannot say at once.

    Raises:
        InvalidConfiguration: with every mistake.
    """
    found = _typed(mapping, lines)
    if found != "fleet":
        raise _refused(mapping, lines, f"is {found!r}, where fleet is wanted")
    return check(FleetConfiguration, cast(Mapping[str, object], mapping), lines or lines_of(mapping))


def _typed(mapping: object, lines: Lines | None) -> str:
    """The ``type`` of a configuration."""
    if not isinstance(mapping, Mapping):
        error = field_error("", f"is {told(mapping)}, where a mapping is wanted", "begin with type: task")
        raise InvalidConfiguration([error])
    entries = cast(Mapping[object, object], mapping)
    if not all(isinstance(key, str) for key in entries):
        raise InvalidConfiguration([field_error("", "has a key that is not a text")])
    if "type" not in entries:
        raise InvalidConfiguration(
            [field_error("type", "is missing", f"one of {', '.join(TYPES)}", lines=lines or lines_of(mapping))],
            source=source_of(mapping),
        )
    found = entries["type"]
    if not isinstance(found, str) or found not in TYPES:
        hint = (nearest(found, list(TYPES)) if isinstance(found, str) else None) or f"one of {', '.join(TYPES)}"
        raise _refused(mapping, lines, f"is {told(found)}, which is not known", hint)
    return found


def _refused(mapping: object, lines: Lines | None, message: str, hint: str | None = None) -> InvalidConfiguration:
    error = field_error("type", message, hint, lines=lines or lines_of(mapping))
    return InvalidConfiguration([error], source=source_of(mapping))
