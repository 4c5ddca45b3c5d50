"""Numbers, switches, texts, durations, memory, ranges: what they mean, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pydantic_core import PydanticCustomError

from perdure.model.durations import in_words
from perdure.spec.grammar import base, durations, ranges
from tests.spec.support import refused, value


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (90, 90),
        ("90", 90),
        ("90s", 90),
        ("15m", 900),
        ("2h", 7200),
        ("1 h", 3600),
        ("1d", 86400),
        ("1w", 604800),
        (0, 0),
        (1.5, 1),
        ("1_000", 1000),
        ("0123", 123),
        ("+5", 5),
    ],
)
def test_durations(written: object, seconds: int) -> None:
    assert durations.seconds(written) == seconds


@pytest.mark.parametrize(
    "written",
    [
        "2H",
        "1h30m",
        "5min",
        "1.5h",
        "1.5",
        " 5m",
        "5 ",
        "1_0m",
        "٣",
        "",
        "x",
        "off",
        True,
        None,
        -1,
        "-5s",
        [],
        {},
        10**15,
        "9" * 12,
    ],
)
def test_what_is_no_duration(written: object) -> None:
    with pytest.raises(PydanticCustomError):
        durations.seconds(written)


@pytest.mark.parametrize(
    ("written", "meant"),
    [(None, None), (True, None), ("on", None), (False, "off"), ("off", "off"), ("no", "off"), ("2h", 7200), (0, 0)],
)
def test_a_duration_with_a_switch_is_unset_off_or_a_value(written: object, meant: object) -> None:
    assert durations.offable(written) == meant
    assert durations.offable_below_zero(written) == meant


def test_only_idle_durations_take_a_negative_number_for_off() -> None:
    assert durations.offable_below_zero(-1) == "off"
    assert durations.offable_below_zero("-1") == "off"
    with pytest.raises(PydanticCustomError):
        durations.offable(-1)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(None, "off"), (0, "0s"), (90, "1m30s"), (3600, "1h"), (0.5, "0.5s"), (259200, "3d"), (604800, "1w")],
)
def test_durations_in_words(seconds: float | None, words: str) -> None:
    assert in_words(seconds) == words


@pytest.mark.parametrize(
    ("written", "low", "high"),
    [
        (8, 8, 8),
        ("8", 8, 8),
        ("2..8", 2, 8),
        ("2..", 2, None),
        ("..8", None, 8),
        ("2 .. 8", 2, 8),
        ({"min": 2}, 2, None),
        ({"min": "2", "max": 4}, 2, 4),
        ("1_000", 1000, 1000),
        ("0123", 123, 123),
    ],
)
def test_ranges(written: object, low: int | None, high: int | None) -> None:
    assert value(ranges.Count, written) == {"min": low, "max": high}


@pytest.mark.parametrize(
    "written", ["..", "8..4", -1, "-1", 1.5, "", "a", True, None, {}, {"mix": 1}, [1], "1..2..3", "1...2"]
)
def test_what_is_no_range(written: object) -> None:
    assert refused(ranges.Count, written)


@pytest.mark.parametrize(
    ("written", "gigabytes"),
    [
        ("16GB", 16),
        ("16gb", 16),
        ("16 GB", 16),
        (16, 16),
        (0.5, 0.5),
        ("512MB", 0.5),
        ("1.5TB", 1536),
        ("16", 16),
        (".5", 0.5),
        ("1_024MB", 1),
    ],
)
def test_memory(written: object, gigabytes: float) -> None:
    assert ranges.gigabytes(written) == gigabytes


@pytest.mark.parametrize("written", ["16G", "16GiB", "", "GB", -1, "-1GB", None, True, "8GB..16GB", "1e3GB", []])
def test_what_is_no_memory(written: object) -> None:
    with pytest.raises(PydanticCustomError):
        ranges.gigabytes(written)


@pytest.mark.parametrize(
    ("grammar", "written", "meant"),
    [
        (base.number, ".5", 0.5),
        (base.number, "5.", 5),
        (base.number, "1_000", 1000),
        (base.number, "1e3", 1000),
        (base.number, "+2.5", 2.5),
        (base.number, 2, 2),
        (base.whole, "2", 2),
        (base.whole, "-2", -2),
        (base.whole, 2.0, 2),
        (base.text, 1.5, "1.5"),
        (base.text, 12, "12"),
        (base.switch, "yes", True),
        (base.switch, "OFF", False),
        (base.switch, "1", True),
        (base.switch, 0, False),
    ],
)
def test_the_simplest_values(grammar: Callable[[object], object], written: object, meant: object) -> None:
    assert grammar(written) == meant


@pytest.mark.parametrize(
    ("grammar", "written"),
    [
        (base.number, "."),
        (base.number, "1e99"),
        (base.number, "inf"),
        (base.number, float("nan")),
        (base.number, float("inf")),
        (base.number, True),
        (base.number, 10**400),
        (base.whole, 2.5),
        (base.whole, "2.0"),
        (base.whole, True),
        (base.whole, float("inf")),
        (base.whole, 10**4000),
        (base.text, True),
        (base.text, None),
        (base.text, 10**4000),
        (base.text, "\ud800"),
        (base.switch, "maybe"),
        (base.switch, 2),
        (base.switch, None),
    ],
)
def test_what_is_not_the_simplest_value(grammar: Callable[[object], object], written: object) -> None:
    with pytest.raises(PydanticCustomError) as refused:
        grammar(written)
    assert len(str(refused.value)) < 200
