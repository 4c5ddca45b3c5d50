"""How requests reach a service: probes, rate limits, scaling, models."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.spec.grammars.names import matching
from tests.spec.grammars.said import Grammar, Said, as_is, joined, listed, mapped, meaning, spelt, words
from tests.spec.grammars.scalars import durations, numbers, switches, texts, wholes

_URLS = matching(r"/[a-zA-Z0-9/_.?=&-]{0,20}")


def probes() -> Grammar:
    """A body needs a method that has one, or none said."""
    always = {"type": words("http")}
    timing = {
        "url": _URLS,
        "timeout": durations(1, 300),
        "interval": durations(1),
        "ready_after": wholes(1, 100),
        "until_ready": switches(),
        "headers": listed(mapped({"name": texts(1), "value": texts(1)})),
    }
    asked = mapped(always, timing | {"method": words("get", "head", "delete")})
    sent = mapped(always, timing | {"method": words("post", "put", "patch", "delete"), "body": texts(1)})
    return asked | sent


def rate_limits() -> Grammar:
    keys = mapped({"type": words("ip_address")}) | mapped(
        {"type": words("header"), "header": matching("[a-zA-Z0-9-_]{1,20}")}
    )
    return mapped(
        {"rps": numbers(1, 1000)},
        {"prefix": matching(r"/[a-zA-Z0-9/_.-]{0,10}"), "key": keys, "burst": wholes(0, 100)},
    )


def scaling() -> Grammar:
    windows = meaning(30, 30, "30s", "30") | meaning(60, 60, "60s", "1m") | meaning(300, 300, "5m", "300s")
    return mapped(
        {"metric": words("rps"), "target": numbers(0.001, 1000)},
        {"window": windows, "scale_up_delay": durations(), "scale_down_delay": durations()},
    )


def replicas(least: int = 0) -> Grammar:
    """``replicas``, with the ``scaling`` that a range needs and a number must not have."""
    return fixed_replicas(least) | joined(
        st.tuples(st.integers(least, 50), st.integers(1, 50)).flatmap(_range), mapped({"scaling": scaling()})
    )


def fixed_replicas(least: int = 0) -> Grammar:
    return spelt(st.integers(least, 100), int, str, lambda n: f"{n}..{n}", lambda n: {"min": n, "max": n}).map(
        lambda said: Said({"replicas": said.written}, {"replicas": {"min": said.meaning, "max": said.meaning}})
    )


def _range(drawn: tuple[int, int]) -> Grammar:
    low, high = drawn[0], drawn[0] + drawn[1]
    both = meaning(
        {"replicas": {"min": low, "max": high}},
        *({"replicas": form} for form in (f"{low}..{high}", {"min": low, "max": high})),
    )
    if low:
        return both
    return both | meaning({"replicas": {"max": high}}, {"replicas": f"..{high}"}, {"replicas": {"max": high}})


def models() -> Grammar:
    """A name alone is served in OpenAI's format."""
    names = as_is(st.from_regex(r"[a-z][a-zA-Z0-9./-]{1,12}", fullmatch=True))
    alone = names.map(
        lambda said: Said(said.written, {"type": "chat", "format": "openai", "name": said.meaning, "prefix": "/v1"})
    )
    openai = mapped(
        {"format": words("openai"), "name": names}, {"type": words("chat"), "prefix": words("/v1", "/api")}
    )
    tgi = mapped({"format": words("tgi"), "name": names}, {"chat_template": texts(), "eos_token": texts()})
    return alone | openai | tgi
