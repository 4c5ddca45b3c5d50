"""Durations: ``90``, ``"90"``, ``90s``, ``15m``, ``2h``, ``1d``, ``1w``; and with an off switch.

An offable duration has three states: unset (None: the default holds), off, and a value in seconds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from perdure.model.durations import in_words
from perdure.spec.grammar.base import SWITCHES, told, whole_text, wrong
from perdure.spec.grammar.forms import SWITCH_WORDS, scalar
from perdure.spec.grammar.setting import OFF, Setting

_WITH_UNIT = re.compile(r"(-?[0-9]{1,12}) *([smhdw])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_LONGEST = 100 * 365 * 86_400
_HINT = "write a number and one unit of s, m, h, d, w: 90s, 15m, 2h, 1d"


def seconds(value: object, hint: str = _HINT) -> int:
    """A duration of zero or more; ``hint``: what to write where it is less."""
    parsed = _parse(value)
    if parsed < 0:
        raise wrong(f"is {told(value)}, and a duration cannot be negative", hint)
    return parsed


def offable(value: object) -> Setting[int]:
    """A duration, or off. True and null leave it unset; false and off switch it off."""
    if value is None or value is True:
        return None
    if value is False:
        return OFF
    if isinstance(value, str) and value.lower() in SWITCHES:
        return None if SWITCHES[value.lower()] else OFF
    return seconds(value, "off switches it off")


def offable_below_zero(value: object) -> Setting[int]:
    """As ``offable``, and every negative number is off, too: how idle durations are written."""
    if value is None or isinstance(value, bool) or (isinstance(value, str) and value.lower() in SWITCHES):
        return offable(value)
    parsed = _parse(value)
    return OFF if parsed < 0 else parsed


def lasting(least: int, most: int | None = None) -> Callable[[int], int]:
    """A check that a duration is in these bounds."""

    def check(value: int) -> int:
        if value < least:
            raise wrong(f"is {in_words(value)}: at least {in_words(least)} is wanted")
        if most is not None and value > most:
            raise wrong(f"is {in_words(value)}: at most {in_words(most)} is allowed")
        return value

    return check


def _parse(value: object) -> int:
    if isinstance(value, bool) or value is None:
        raise wrong(f"is {told(value)}, where a duration is wanted", _HINT)
    parsed: int | None = None
    if isinstance(value, str):
        if match := _WITH_UNIT.fullmatch(value):
            parsed = int(match[1]) * _UNITS[match[2]]
        elif (spelt := whole_text(value)) is not None:
            parsed = spelt
        elif value.lower() in SWITCHES:
            raise wrong(f"is {told(value)}, and it cannot be switched on or off", _HINT)
    elif isinstance(value, int):
        parsed = value
    elif isinstance(value, float) and abs(value) < 2**53:
        parsed = math.floor(value)  # what is a little below zero is negative, too
    if parsed is None:
        raise wrong(f"is not a duration: {told(value)}", _HINT)
    if parsed > _LONGEST:
        raise wrong("is longer than 100 years", _HINT)
    return parsed


_TEXT = r"\+?[0-9][0-9_]*|[0-9]+ *[smhdw]"
_SCHEMA = scalar("duration", "string", "number", pattern=_TEXT, hint=_HINT, examples=["15m", "2h", "1d"]) | {
    "minimum": 0
}
_OFFABLE = scalar(
    "duration or off",
    "string",
    "number",
    "boolean",
    "null",
    pattern=f"-?({_TEXT})|{SWITCH_WORDS}",
    hint=f"{_HINT}, or off",
    examples=["2h", "1d", "off"],
)

Duration = Annotated[int, BeforeValidator(seconds), WithJsonSchema(_SCHEMA)]
OffableDuration = Annotated[Setting[int], BeforeValidator(offable), WithJsonSchema(_OFFABLE | {"minimum": 0})]
IdleDuration = Annotated[Setting[int], BeforeValidator(offable_below_zero), WithJsonSchema(_OFFABLE)]
