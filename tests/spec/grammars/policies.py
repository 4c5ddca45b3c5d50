"""Where a run may go, how long it may last, when it is tried again: the fields that profiles hold, too."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.spec.grammars.names import backends, references, resource_names, tags
from tests.spec.grammars.said import Grammar, Said, as_is, listed, mapped, meaning, words
from tests.spec.grammars.scalars import durations, idle, numbers, offable, texts, wholes

EVENTS = ("no-capacity", "interruption", "error")


def retries() -> Grammar:
    """A switch, or a mapping; every key of it may be left out."""
    events = st.lists(st.sampled_from(EVENTS), unique=True, min_size=1).map(lambda found: Said(found, found))
    on = meaning({"on_events": None, "duration": None}, True, "true", "on", {})
    off = meaning("off", False, "off", "no")
    return on | off | mapped({}, {"on_events": events, "duration": durations(), "max_attempts": wholes(1, 100)})


def crons() -> Grammar:
    """Five fields of standard cron; numbers, names, ranges, steps and lists."""

    def field(low: int, high: int, names: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
        one = st.integers(low, high).map(str) | (st.sampled_from(names) if names else st.nothing())
        span = st.tuples(st.integers(low, high), st.integers(low, high)).map(
            lambda pair: f"{min(pair)}-{max(pair)}"
        )
        step = st.builds("{}/{}".format, span | st.just("*"), st.integers(1, 12))
        return st.just("*") | one | span | step | st.lists(one | span, min_size=2, max_size=3).map(",".join)

    fields = st.tuples(
        field(0, 59),
        field(0, 23),
        field(1, 28),
        field(1, 12, ("jan", "JUL", "Dec")),
        field(0, 7, ("sun", "MON", "Fri")),
    )
    one = st.builds(lambda parts, gap: Said(gap.join(parts), " ".join(parts)), fields, st.sampled_from([" ", "  "]))
    return one.map(lambda said: Said(said.written, [said.meaning])) | listed(one, least=1)


def utilization() -> Grammar:
    return mapped({"min_gpu_utilization": wholes(0, 100), "time_window": durations(300, 3600)})


def instances() -> Grammar:
    """By name, by host, or by number in a fleet."""
    hosts = as_is(st.ip_addresses(v=4).map(str))
    by_name = resource_names.map(lambda said: Said(said.written, {"name": said.meaning}))
    return (
        by_name
        | mapped({"name": resource_names})
        | mapped({"hostname": hosts})
        | mapped({"fleet": references(), "instance": wholes(0, 100)})
    )


def options() -> Grammar:
    """At most one backend has options."""
    vast = mapped(
        {"type": words("vastai")},
        {"offer_order": words("score", "price"), "min_reliability": numbers(0, 1), "min_score": numbers(0, 1000)},
    )
    return listed(vast, most=1)


PLACEMENT: dict[str, Grammar] = {
    "backends": listed(backends),
    "regions": listed(texts(1)),
    "availability_zones": listed(texts(1)),
    "instance_types": listed(texts(1)),
    "reservation": texts(1),
    "spot_policy": words("spot", "on-demand", "auto"),
    "max_price": numbers(0.001, 1000),
    "retry": retries(),
    "idle_duration": idle(),
    "tags": tags(),
    "backend_options": options(),
}
"""Also fields of a fleet."""

PROFILE: dict[str, Grammar] = PLACEMENT | {
    "max_duration": offable(),
    "stop_duration": offable(),
    "creation_policy": words("reuse", "reuse-or-create"),
    "utilization_policy": utilization(),
    "startup_order": words("any", "master-first", "workers-first"),
    "stop_criteria": words("all-done", "master-done"),
    "schedule": mapped({"cron": crons()}),
    "fleets": listed(references()),
    "instances": listed(instances(), least=1),
}
"""The twenty."""
