"""Where a run may go, how long it may last, when it is tried again: the fields that profiles hold, too."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from hypothesis import strategies as st

from tests.spec.grammars.names import backends, references, resource_names, tags
from tests.spec.grammars.said import Grammar, Said, as_is, in_a_row, listed, mapped, meaning, words
from tests.spec.grammars.scalars import durations, idle, numbers, offable, texts, wholes

EVENTS = ("no-capacity", "interruption", "error")


def retries() -> Grammar:
    """A switch, or a mapping; every key of it may be left out."""
    events = st.lists(st.sampled_from(EVENTS), unique=True, min_size=1).map(lambda found: Said(found, found))
    on = meaning({"on_events": None, "duration": None}, True, "true", "on", {})
    off = meaning("off", False, "off", "no")
    fields = {
        "on_events": events,
        "duration": durations(),
        "max_attempts": wholes(1, 100),
        "backoff": listed(durations(), least=1),
        "on_exit_codes": listed(exit_codes(), least=1),
        "scope": words("node", "replica"),
    }
    return on | off | mapped({}, fields)


def exit_codes() -> Grammar:
    """``137``, ``"137"``, or ``1..127``."""
    codes = st.tuples(st.integers(0, 255), st.integers(0, 255)).map(sorted)
    one = st.integers(0, 255).flatmap(lambda code: meaning([code, code], code, str(code)))
    return one | codes.flatmap(lambda pair: meaning(pair, "{}..{}".format(*pair), "{} .. {}".format(*pair)))


def signals() -> Grammar:
    """With or without SIG, in any case."""
    names = st.sampled_from(["TERM", "INT", "QUIT", "HUP", "USR1", "USR2"])
    return names.flatmap(lambda name: meaning(f"SIG{name}", name, f"SIG{name}", name.lower(), f"sig{name.lower()}"))


def deadlines() -> Grammar:
    """A duration, or a moment with its zone, in a time that none of us will see."""
    zones = st.integers(-23 * 60, 23 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
    days = st.datetimes(datetime(2900, 1, 1), datetime(2999, 12, 31)).map(lambda day: day.replace(microsecond=0))  # noqa: DTZ001
    zoned = st.builds(lambda day, zone: day.replace(tzinfo=zone).isoformat(), days, zones)
    plain = days.map(lambda day: day.replace(tzinfo=UTC).isoformat().removesuffix("+00:00"))
    return (
        durations(1)
        | zoned.map(lambda text: Said(text, text.replace("+00:00", "Z")))
        | plain.flatmap(lambda text: meaning(f"{text}Z", f"{text}Z", f"{text}+00:00", text.replace("T", " ") + "Z"))
    )


def notices() -> Grammar:
    """A web hook."""
    urls = st.builds(
        "{}://{}/{}".format, st.sampled_from(["http", "https"]), _HOSTS, st.sampled_from(["", "a?b=c"])
    )
    on = st.lists(st.sampled_from(["running", "failed", "done"]), min_size=1, unique=True)
    return mapped({"url": as_is(urls)}, {"on": as_is(on)})


_HOSTS = st.sampled_from(["example.com", "10.0.0.1:8080", "[::1]", "me:token@h"])


def dependencies() -> Grammar:
    """Runs by name, each once."""
    names = st.lists(st.from_regex("before-[a-z0-9]{1,5}", fullmatch=True), unique=True, max_size=3)

    def forms(name: str) -> Grammar:
        ended = {"run": name, "on": "ended"}
        return meaning({"run": name, "on": "done"}, name, {"run": name}) | meaning(ended, ended)

    return names.flatmap(lambda found: in_a_row([forms(name) for name in found]))


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


zones = words("Europe/Berlin", "UTC", "America/Argentina/Buenos_Aires")


def schedules() -> Grammar:
    return mapped({"cron": crons()}, {"timezone": zones})


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
    "schedule": schedules(),
    "fleets": listed(references()),
    "instances": listed(instances(), least=1),
    "stop_grace": durations(),
    "max_cost": numbers(0.001, 10_000),
    "deadline": deadlines(),
    "notify": listed(notices()),
}
"""The twenty, and ours."""
