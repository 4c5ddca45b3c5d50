"""Schedules: five fields of standard cron (0 and 7 are Sunday)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, cast

from cronsim import CronSim, CronSimError
from pydantic import BeforeValidator, WithJsonSchema

from perdure.spec.grammar.base import told, wrong
from perdure.spec.grammar.forms import one_or_more, scalar

MAX_EXPRESSIONS = 100
"""Of one schedule: each is asked for its next slot whenever one has passed."""

_HINT = 'five fields, minute hour day month weekday: "15 23 * * *"'
_NICKNAMES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_NTH_DAY = re.compile(r"#|\blast\b|\b[1-5](st|nd|rd|th)\b|(?<![a-z])lw?(?![a-z])", re.IGNORECASE)


def cron_list(value: object) -> tuple[str, ...]:
    """One expression or a list of them."""
    items = cast(list[object], value) if isinstance(value, list | tuple) else [value]
    if not items:
        raise wrong("is empty", _HINT)
    if len(items) > MAX_EXPRESSIONS:
        raise wrong(
            f"has {len(items)} expressions: at most {MAX_EXPRESSIONS} are allowed",
            "join some of them: 0,20,40 * * * *",
        )
    return tuple(_cron(item) for item in items)


def _cron(value: object) -> str:
    if not isinstance(value, str) or len(value) > 200:
        raise wrong(f"is {told(value)}, where a cron expression is wanted", _HINT)
    if value.strip().startswith("@"):
        fields = _NICKNAMES.get(value.strip().lower())
        hint = f'write "{fields}"' if fields else _HINT
        raise wrong(f"is {told(value)}, a name that standard cron does not have", hint)
    if _NTH_DAY.search(value):
        hint = "name the days, and let the commands look at the date"
        raise wrong(f"counts weeks or days from the end, which standard cron cannot: {told(value)}", hint)
    fields = value.split()
    if len(fields) != 5:
        raise wrong(f"is not a cron expression of five fields: {told(value)}", _HINT)
    expression = " ".join(fields)
    try:
        CronSim(expression, datetime(2024, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        raise wrong(f"is not a cron expression: {told(value)}: {str(error).lower()}", _HINT) from None
    return expression


_EXPRESSION = scalar(
    "cron expression",
    "string",
    pattern=r" *([^ ]+ +){4}[^ ]+ *",
    hint=_HINT,
    examples=["15 23 * * *", "0 8 * * mon-fri"],
)
CronList = Annotated[
    tuple[str, ...],
    BeforeValidator(cron_list),
    WithJsonSchema(one_or_more(_EXPRESSION)),
]
