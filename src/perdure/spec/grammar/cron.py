"""Schedules: five fields of standard cron (0 and 7 are Sunday)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, cast

from cronsim import CronSim, CronSimError
from pydantic import BeforeValidator, WithJsonSchema

from perdure.spec.grammar.base import told, wrong

_HINT = 'five fields, minute hour day month weekday: "15 23 * * *"'


def cron_list(value: object) -> tuple[str, ...]:
    """One expression or a list of them."""
    items = cast(list[object], value) if isinstance(value, list | tuple) else [value]
    if not items:
        raise wrong("is empty", _HINT)
    return tuple(_cron(item) for item in items)


def _cron(value: object) -> str:
    if not isinstance(value, str):
        raise wrong(f"is {told(value)}, where a cron expression is wanted", _HINT)
    fields = value.split()
    if len(fields) != 5 or len(value) > 200:
        raise wrong(f"is not a cron expression of five fields: {told(value)}", _HINT)
    if any("l" in field.lower() and not field.lower().startswith("jul") for field in (fields[2], fields[4])):
        raise wrong(f"uses L, which is not standard cron: {told(value)}", _HINT)
    try:
        CronSim(value, datetime(2024, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        raise wrong(f"is not a cron expression: {told(value)}: {str(error).lower()}", _HINT) from None
    return value


CronList = Annotated[
    tuple[str, ...],
    BeforeValidator(cron_list),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
]
