"""Ranges and memory: ``8``, ``2..8``, ``2..``, ``..8``, ``{min, max}``; ``16GB``, ``512MB``, ``16GB..64GB``."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Self, cast

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from perdure.spec.grammar.base import Written, told, whole, wrong
from perdure.spec.grammar.forms import Short, range_of, scalar

_MEMORY = re.compile(r"([0-9][0-9_]{0,14}(?:\.[0-9]{0,15})?|\.[0-9]{1,15}) *(MB|GB|TB)?", re.IGNORECASE)
MEMORY_TEXT = r"([0-9][0-9_]*(\.[0-9]*)?|\.[0-9]+) *([MmGgTt][Bb])?"
_MEMORY_HINT = "write 16GB, 512MB or 1.5TB"
_MEMORY_SPAN_HINT = "write 16GB for exactly as much, 16GB.. for at least, 16GB..64GB for a range"
MEMORY_END = scalar(
    "memory", "number", "string", pattern=MEMORY_TEXT, hint=_MEMORY_HINT, examples=["16GB", "512MB"]
)
_GB = {"": 1.0, "MB": 1 / 1024, "GB": 1.0, "TB": 1024.0}


def gigabytes(value: object, hint: str = _MEMORY_HINT) -> float:
    """Memory in GB (of 1024 MB); a bare number is GB."""
    if isinstance(value, str) and (match := _MEMORY.fullmatch(value)):
        return float(match[1].replace("_", "")) * _GB[(match[2] or "").upper()]
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 10**15:
        return float(value)
    raise wrong(f"is not an amount of memory: {told(value)}", hint)


def bounds(value: object, parse: Callable[[object], object]) -> object:
    """The ``min`` and ``max`` of a range, from any of its forms; a mapping is left to its model."""
    if isinstance(value, Written):
        return value
    if isinstance(value, dict):
        return cast(object, value)
    if isinstance(value, str) and ".." in value:
        low, _, high = value.partition("..")
        low, high = low.strip(), high.strip()
        if not low and not high:
            raise wrong(f"is {told(value)}, a range without an end", "write 2..8, 2.. or ..8")
        if high.startswith("."):  # a third dot is no decimal point
            raise wrong(f"is not a range: {told(value)}", "write 2..8, 2.. or ..8")
        return {end: parse(number) for end, number in (("min", low), ("max", high)) if number}
    exact = parse(value)
    return {"min": exact, "max": exact}


def _memory_bounds(value: object) -> object:
    return bounds(value, lambda end: gigabytes(end, _MEMORY_SPAN_HINT))


class CountRange(Written):
    """How many: at least ``min``, at most ``max``."""

    min: Annotated[int, Field(ge=0), BeforeValidator(whole)] | None = None
    """At least."""

    max: Annotated[int, Field(ge=0), BeforeValidator(whole)] | None = None
    """At most."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        _check_order(self.min, self.max)
        return self

    def words(self) -> str:
        return range_words(self.min, self.max)


class ReplicaRange(CountRange):
    """How many replicas: between ``min`` (zero if unset) and ``max``."""

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.max is None:
            raise wrong("has no upper end", f"write {self.min}..{(self.min or 0) + 1}")
        return self

    @property
    def fixed(self) -> bool:
        return (self.min or 0) == self.max


Memory = Annotated[
    float,
    BeforeValidator(gigabytes),
    WithJsonSchema(MEMORY_END),
]


class MemoryRange(Written):
    """How much memory, in GB."""

    min: Memory | None = None
    """At least."""

    max: Memory | None = None
    """At most."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        _check_order(self.min, self.max, "GB")
        return self

    def words(self) -> str:
        return range_words(self.min, self.max, "GB")


def range_words(low: float | None, high: float | None, unit: str = "") -> str:
    """``2..8``, ``16GB..``, ``4`` where both ends are one."""
    if low is not None and low == high:
        return _amount(low, unit)
    return f"{_amount(low, unit)}..{_amount(high, unit)}"


def _amount(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    return f"{value:.0f}{unit}" if value == int(value) else f"{value:g}{unit}"


def _check_order(low: float | None, high: float | None, unit: str = "") -> None:
    if low is None and high is None:
        raise wrong("is a range without an end", "give min, max or both")
    if low is not None and high is not None and low > high:
        hint = f"write {range_words(high, low, unit)}"
        raise wrong(f"begins after it ends: {range_words(low, high, unit)}", hint)


_COUNT_TEXT = r"\+?[0-9][0-9_]*"
COUNT_END = scalar("number", "integer", "string", pattern=_COUNT_TEXT)
COUNT = scalar(
    "number or range",
    "integer",
    "string",
    pattern=range_of(_COUNT_TEXT),
    hint="write 4, 2..8, 2.. or ..8",
    examples=[2, "2..8", "2.."],
) | {"minimum": 0}
MEMORY = scalar(
    "memory or range",
    "number",
    "string",
    pattern=range_of(MEMORY_TEXT),
    hint="write 16GB or 16GB..64GB",
    examples=["16GB", "16GB..", "16GB..64GB"],
)

Count = Annotated[CountRange, BeforeValidator(lambda v: bounds(v, whole)), Short(COUNT)]
MemorySpan = Annotated[MemoryRange, BeforeValidator(_memory_bounds), Short(MEMORY)]
Replicas = Annotated[ReplicaRange, BeforeValidator(lambda v: bounds(v, whole)), Short(COUNT)]
