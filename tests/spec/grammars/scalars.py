"""Numbers, switches, texts, durations, memory and ranges."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.spec.grammars.said import Grammar, Said, as_is, meaning, spelt

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
PRINTABLE = st.characters(
    min_codepoint=32, max_codepoint=0x2FF, exclude_characters="\x7f$", exclude_categories=["Cc", "Cs"]
)


def _grouped(value: int) -> str:
    return f"{value:_}"


def wholes(least: int = 0, most: int = 10_000) -> Grammar:
    """``8``, ``"8"``, ``1_000``, ``08``, ``+8``."""
    return spelt(st.integers(least, most), int, str, _grouped, "{:03}".format, "{:+}".format)


def numbers(least: float, most: float) -> Grammar:
    """With at most three decimals: ``2``, ``2.5``, ``.5``, ``2.``, ``25e-1``."""
    thousandths = st.integers(round(least * 1000), round(most * 1000))
    forms = st.sampled_from([_float, str, _short, "{}0".format, lambda x: f"{round(x * 1000)}e-3"])
    return st.builds(lambda n, form: Said(form(n / 1000), n / 1000), thousandths, forms)


def _float(value: float) -> float:
    return value


def _short(value: float) -> str:
    text = f"{value:.3f}".rstrip("0")
    return text.removeprefix("0") if value else "0"


def switches() -> Grammar:
    """``true``, ``yes``, ``on`` in any case, ``1``; and their opposites."""
    return meaning(True, True, "true", "yes", "on", "On", "TRUE", "1", 1) | meaning(
        False, False, "false", "no", "off", "Off", "FALSE", "0", 0
    )


def texts(least: int = 0, most: int = 12) -> Grammar:
    """Any printable text, without ``$``; numbers are taken for the text they are."""
    plain = as_is(st.text(PRINTABLE, min_size=least, max_size=most))
    return plain | st.integers(0, 10**6).map(lambda n: Said(n, str(n)))


def durations(least: int = 0, most: int = 10**8) -> Grammar:
    """Seconds as a number or with one of five units."""
    bare = spelt(st.integers(least, min(most, 10**6)), int, str, _grouped)

    def with_unit(unit: str) -> Grammar:
        size = UNITS[unit]
        amounts = st.integers(-(-least // size), most // size)
        return st.builds(
            lambda n, gap: Said(f"{n}{gap}{unit}", n * size), amounts, st.sampled_from(["", " ", "  "])
        )

    return bare | st.sampled_from([unit for unit in UNITS if UNITS[unit] <= most]).flatmap(with_unit)


FRACTIONS = st.integers(0, 10**6).map(lambda n: Said(n + 0.5, n))
"""Numbers of seconds with a fraction, which is dropped. In a text it is refused, so these must not be quoted."""

_OFF = meaning("off", "off", "Off", "no", "false", False)
_UNSET = meaning(None, None, True, "true", "on")


def offable() -> Grammar:
    """A duration, off, or unset."""
    return _OFF | _UNSET | durations()


def idle() -> Grammar:
    """As ``offable``, with negative numbers, of any size, for off."""
    negative = st.integers(-(10**12) + 1, -1)
    return offable() | negative.flatmap(lambda n: meaning("off", n, str(n), f"{n}h", f"{n} w", f"{n}s"))


def memory(least: int = 0, most: int = 4096) -> Grammar:
    """GB; of 1024 MB, and 1024 to a TB."""
    suffix = st.sampled_from(["GB", "gb", " GB", "Gb"])
    bare = spelt(st.integers(least, most), int, float, str)
    whole = st.builds(lambda n, unit: Said(f"{n}{unit}", n), st.integers(least, most), suffix)
    half = st.builds(lambda n, unit: Said(f"{n}.5{unit}", n + 0.5), st.integers(least, most), suffix)
    small = st.builds(
        lambda n, unit: Said(f"{n}{unit}", n / 1024),
        st.integers(least * 1024, most * 1024),
        st.sampled_from(["MB", " mb"]),
    )
    large = spelt(st.integers(-(-least // 1024), max(1, most // 1024)), "{}TB".format, "{} tb".format)
    return bare | whole | half | small | large.map(lambda said: Said(said.written, said.meaning * 1024))


def ranges(one: Grammar, *, open_end: bool = True) -> Grammar:
    """``8``, ``2..8``, ``2..``, ``..8`` and mappings of ``min`` and ``max``."""
    exact = one.map(lambda said: Said(said.written, {"min": said.meaning, "max": said.meaning}))
    return exact | st.tuples(one, one, st.booleans(), st.sampled_from(["..", " .. ", ".. "])).flatmap(
        lambda drawn: _range(*_in_order(drawn[0], drawn[1]), dots=drawn[3], open_end=open_end)
    )


def _in_order(one: Said, other: Said) -> tuple[Said, Said]:
    return (one, other) if one.meaning <= other.meaning else (other, one)


def _range(low: Said, high: Said, *, dots: str, open_end: bool) -> Grammar:
    both = {"min": low.meaning, "max": high.meaning}
    forms: list[Said] = [
        Said(f"{_end(low)}{dots}{_end(high)}", both),
        Said({"min": low.written, "max": high.written}, both),
        Said(f"{dots}{_end(high)}".strip(), {"min": None, "max": high.meaning}),
        Said({"max": high.written}, {"min": None, "max": high.meaning}),
    ]
    if open_end:
        forms += [
            Said(f"{_end(low)}{dots}".strip(), {"min": low.meaning, "max": None}),
            Said({"min": low.written, "max": None}, {"min": low.meaning, "max": None}),
        ]
    return st.sampled_from(forms)


def _end(said: Said) -> str:
    """An end of a range in a text, where a third dot would not be read."""
    return str(said.written).removesuffix(".0")


counts = ranges(wholes())
memory_spans = ranges(memory())
