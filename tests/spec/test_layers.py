"""Flags over configuration over profile over fleet over default: one rule for every field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure import spec
from perdure.model.errors import FieldError, InvalidConfiguration
from perdure.model.origins import Origin
from perdure.spec.fleet_layer import under_fleet
from perdure.spec.models.profile import ProfileFields
from perdure.spec.models.run import RunFields, Task
from perdure.spec.reading import Reading, read
from perdure.spec.shown import brief, effective_values
from tests.spec.support import mistakes, resolve

TASK: dict[str, Any] = {"type": "task", "commands": ["x"]}

VALUES: dict[str, tuple[Any, Any, Any]] = {
    "backends": (["aws"], ["gcp"], ["local"]),
    "regions": (["a"], ["b"], []),
    "availability_zones": (["a"], ["b"], ["c"]),
    "instance_types": (["a"], ["b"], ["c"]),
    "reservation": ("a", "b", "c"),
    "spot_policy": ("spot", "auto", "on-demand"),
    "max_price": (1, 2.5, "3"),
    "retry": (True, False, {"on_events": ["error"], "duration": "2h"}),
    "idle_duration": ("1h", "off", 0),
    "backend_options": ([{"type": "vastai"}], [{"type": "vastai", "min_score": 1}], []),
    "max_duration": ("1h", False, 0),
    "stop_duration": ("1h", "off", 0),
    "stop_grace": ("1s", 2, 0),
    "creation_policy": ("reuse", "reuse-or-create", "reuse"),
    "utilization_policy": (
        {"min_gpu_utilization": 1, "time_window": "5m"},
        {"min_gpu_utilization": 2, "time_window": "5m"},
        {"min_gpu_utilization": 0, "time_window": "6m"},
    ),
    "startup_order": ("any", "master-first", "workers-first"),
    "stop_criteria": ("all-done", "master-done", "all-done"),
    "schedule": ({"cron": "0 0 * * *"}, {"cron": "1 0 * * *"}, {"cron": ["2 0 * * *"]}),
    "fleets": (["a1"], ["b1"], ["main/c1"]),
    "instances": (["a"], ["b"], [{"hostname": "c"}]),
    "max_cost": (1, 2, 3),
    "deadline": ("1h", "2026-12-31T18:00:00Z", 60),
    "notify": ([{"url": "https://a.example"}], [], [{"url": "https://b.example", "on": ["done"]}]),
}
"""Of every field that all three layers have: three values that say something, false and off among them. (Those that
are decided by parts have tests of their own.)"""

UNSET: dict[str, tuple[Any, ...]] = {
    "idle_duration": (None, True, "on"),
    "max_duration": (None, True, "yes"),
    "stop_duration": (None, True),
}
ONLY_RUNS: dict[str, tuple[Any, Any]] = {
    "priority": (0, 50),
    "image": ("a", "b"),
    "ports": ([80], ["1:2", 3]),
    "nodes": (1, 4),
    "user": ("a", "1000"),
    "privileged": (True, False),
    "working_dir": ("/a", "/b"),
    "commands": (["a"], ["b", "c"]),
    "files": ([], ["a"]),
    "stop_signal": ("SIGINT", "SIGTERM"),
}
NOTHING = "nothing"
"""The field is not in the layer at all."""


def layered(
    field: str, flag: Any = NOTHING, configuration: Any = NOTHING, profile: Any = NOTHING, name: str = "large"
) -> Reading:
    def layer(value: Any) -> dict[str, Any]:
        return {} if value is NOTHING else {field: value}

    return read(TASK | layer(configuration), flags=layer(flag), profile={"name": name} | layer(profile))


def meaning(field: str, value: Any) -> object:
    """What a value means by itself."""
    return getattr(spec.parse_run(TASK | {field: value}), field)


def test_every_field_of_a_profile_is_tried() -> None:
    assert VALUES.keys() | {"tags"} == set(ProfileFields.model_fields)


@st.composite
def _layers(draw: st.DrawFn) -> tuple[str, Any, Any, Any]:
    field = draw(st.sampled_from(sorted(VALUES)))
    unset = st.sampled_from((NOTHING, *UNSET.get(field, (None,))))
    layer = st.one_of(unset, st.sampled_from(VALUES[field]))
    return field, draw(layer), draw(layer), draw(layer)


@given(_layers())
def test_the_first_layer_that_says_something_decides(drawn: tuple[str, Any, Any, Any]) -> None:
    """Each field, each set of layers, each of the three states: unset (left out, null, or true), off, a value."""
    field, *values = drawn
    reading = layered(field, *values)
    unset = (NOTHING, *UNSET.get(field, (None,)))
    saying = [
        (layer, value)
        for layer, value in zip(("flag", "configuration", "profile"), values, strict=True)
        if not any(value is nothing for nothing in unset)
    ]
    origin = reading.layered.origin(field)
    found = getattr(reading.configuration, field)
    if not saying:
        assert (found, origin.layer) == (None, "default")
        return
    layer, value = saying[0]
    assert (found, origin.layer, origin.path) == (meaning(field, value), layer, field)


@pytest.mark.parametrize("field", sorted(VALUES))
@pytest.mark.parametrize(("upper", "lower"), [(0, 1), (0, 2), (1, 2)])
def test_between_two_layers_the_upper_one_decides(field: str, upper: int, lower: int) -> None:
    first, second, _ = VALUES[field]
    for one, other in ((first, second), (second, first)):
        values: list[Any] = [NOTHING] * 3
        values[upper], values[lower] = one, other
        assert getattr(layered(field, *values).configuration, field) == meaning(field, one)
        for unset in (NOTHING, *UNSET.get(field, (None,))):
            values[upper] = unset
            assert getattr(layered(field, *values).configuration, field) == meaning(field, other)


@pytest.mark.parametrize("field", sorted(ONLY_RUNS))
def test_what_a_profile_does_not_have_is_decided_by_flags_and_configuration(field: str) -> None:
    first, second = ONLY_RUNS[field]
    for one, other in ((first, second), (second, first)):
        assert getattr(layered(field, one, other).configuration, field) == meaning(field, one)
        assert getattr(layered(field, NOTHING, other).configuration, field) == meaning(field, other)
        assert getattr(layered(field, one).configuration, field) == meaning(field, one)


@pytest.mark.parametrize("field", ["cpu", "memory", "gpu", "disk", "shm_size"])
def test_resources_are_decided_one_by_one(field: str) -> None:
    flags = {"cpu": "arm:8", "memory": "1GB", "gpu": "H100:8", "disk": "7GB", "shm_size": "1GB"}
    written = {"cpu": 4, "memory": "16GB", "gpu": "A100", "disk": "200GB", "shm_size": "2GB"}
    mapping = TASK | {"image": "i", "resources": written}
    reading = read(mapping, flags={"resources": {field: flags[field]}})
    both = spec.parse_run(TASK | {"image": "i", "resources": written | {field: flags[field]}})
    assert reading.configuration == both
    for other in written:
        assert reading.layered.origin(f"resources.{other}").layer == ("flag" if other == field else "configuration")


def test_a_resource_that_the_configuration_asks_not_to_have_stays_so() -> None:
    run = read(TASK | {"resources": {"gpu": None, "disk": None}}, flags={"resources": {"cpu": 4, "gpu": None}})
    assert isinstance(run.configuration, Task)
    assert (run.configuration.resources.gpu, run.configuration.resources.disk) == (None, None)
    assert run.configuration.resources.cpu.count.min == 4


NAMES = st.sampled_from(["A", "B", "C", "D"])
VARIABLES = st.dictionaries(NAMES, st.text("xyz", max_size=3))


@given(VARIABLES, VARIABLES, st.booleans(), st.booleans())
def test_variables_are_decided_name_by_name(
    flags: Mapping[str, str], written: Mapping[str, str], flags_listed: bool, listed: bool
) -> None:
    def form(env: Mapping[str, str], as_list: bool) -> object:
        return [f"{name}={value}" for name, value in env.items()] if as_list else dict(env)

    reading = read(TASK | {"env": form(written, listed)}, flags={"env": form(flags, flags_listed)})
    assert isinstance(reading.configuration, RunFields)
    assert reading.configuration.env == {**written, **flags}
    for index, name in enumerate(written):
        if name not in flags:
            path = f"env[{index}]" if listed else f"env.{name}"
            assert reading.layered.origin(f"env.{name}") == Origin(layer="configuration", path=path)


def test_a_variable_to_be_supplied_stays_one_under_flags() -> None:
    reading = read(TASK | {"env": ["A", "B=1"]}, flags={"env": {"B": "2"}})
    assert mistakes(TASK | {"env": ["A", "B=1"]}, flags={"env": {"B": "2"}})[0].path == "env[0]"
    assert reading.layered.mapping["env"] == {"A": {"key": "A"}, "B": "2"}


@given(VARIABLES, VARIABLES, VARIABLES)
def test_tags_are_decided_name_by_name(
    flags: Mapping[str, str], written: Mapping[str, str], profile: Mapping[str, str]
) -> None:
    reading = layered("tags", dict(flags), dict(written), dict(profile))
    assert isinstance(reading.configuration, RunFields)
    assert reading.configuration.tags == {**profile, **written, **flags}


@pytest.mark.parametrize(
    ("configuration", "profile", "expected", "origins"),
    [
        ({"on_events": ["error"], "duration": "1h"}, NOTHING, {"on_events": ("error",)}, ("configuration", "flag")),
        (NOTHING, {"on_events": ["error"]}, {"on_events": ("error",)}, ("profile", "flag")),
        ({"max_attempts": 3}, {"on_events": ["error"]}, {"max_attempts": 3}, ("default", "flag")),
        (True, NOTHING, {}, ("default", "flag")),
        (False, {"on_events": ["error"]}, {}, ("default", "flag")),
        (NOTHING, NOTHING, {}, ("default", "flag")),
    ],
)
def test_a_retry_duration_alone_is_that_of_the_retrying_below(
    configuration: Any, profile: Any, expected: dict[str, Any], origins: tuple[str, str]
) -> None:
    reading = layered("retry", {"duration": "2h"}, configuration, profile)
    assert isinstance(reading.configuration, RunFields)
    retry = reading.configuration.retry
    assert retry is not None
    assert retry != "off"
    assert retry.model_dump(exclude_none=True) == {"duration": 7200, **expected}
    rows = {one.path: one.origin.layer for one in reading.effective}
    assert (rows["retry.on_events"], rows["retry.duration"]) == origins


def test_a_whole_retry_of_flags_replaces_the_one_below() -> None:
    reading = layered("retry", {"on_events": ["error"], "duration": "2h"}, {"max_attempts": 3})
    assert reading.layered.mapping["retry"] == {"on_events": ["error"], "duration": "2h"}


def test_without_layers_the_configuration_is_what_was_written() -> None:
    document = spec.load_yaml("type: task\ncommands: [x]\nenv: [A=1, B]\nretry:\nresources: {gpu: }\n")
    assert read(document).layered.mapping == dict(document)


def test_a_run_goes_by_all_its_layers() -> None:
    run = resolve(
        TASK | {"max_duration": "1h"},
        flags={"resources": {"gpu": "A100:2"}, "retry": {"duration": "30m"}},
        profile={"name": "large", "max_price": 2, "retry": {"on_events": ["interruption"]}, "max_duration": "9h"},
    )
    assert run.policy.requirements.gpu is not None
    assert run.policy.requirements.gpu.names == ("A100",)
    assert run.policy.requirements.max_price == 2
    assert run.policy.retry is not None
    assert (run.policy.retry.on, run.policy.retry.duration) == (("interruption",), 1800)
    assert run.max_duration == 3600
    origins = {one.path: one.origin.words() for one in run.values}
    assert origins["resources.gpu"] == origins["resources"] == "--gpu"
    assert (origins["resources.cpu"], origins["max_price"]) == ("default", "profile large")
    assert (origins["retry.duration"], origins["retry.on_events"]) == ("--retry-duration", "profile large")
    assert (origins["max_duration"], origins["priority"]) == ("configuration", "default")


def refused(mapping: object, **layers: Any) -> list[FieldError]:
    with pytest.raises(InvalidConfiguration) as caught:
        read(mapping, **layers)
    return caught.value.errors


def test_every_layer_is_checked_by_itself_and_all_are_told() -> None:
    document = spec.load_yaml("type: task\ncommands: [x]\nmax_price: -1\n")
    errors = refused(
        document,
        flags={"resources": {"gpu": "A100:x:y"}, "sport": 1},
        profile={"name": "large", "retry": {"duration": "soon"}, "image": "x"},
    )
    assert {(one.layer, one.path, one.line) for one in errors} == {
        ("configuration", "max_price", 3),
        ("flag", "resources.gpu", None),
        ("flag", "sport", None),
        ("profile", "retry.duration", None),
        ("profile", "image", None),
    }


def test_a_mistake_of_two_layers_together_is_told_where_it_is_written() -> None:
    document = spec.load_yaml("type: task\ncommands: [x]\n")
    (error,) = read(document, flags={"resources": {"gpu": "MI300X"}}).invalid
    assert (error.layer, error.path, error.line) == ("flag", "resources.gpu", None)
    text = "type: task\ncommands: [x]\nresources: {gpu: MI300X}\nenv: [A, 'B=${{ run.args }}']\n"
    reading = read(spec.load_yaml(text), flags={"env": {"A": "1"}})
    assert {(one.layer, one.path, one.line) for one in reading.invalid} == {
        ("configuration", "resources.gpu", 3),
        ("configuration", "env[1]", 4),
    }


def test_a_raw_client_is_told_of_mistakes_in_its_layers() -> None:
    errors = mistakes(TASK, flags={"max_price": 0}, profile={"spot_policy": "maybe"})
    assert {(one.layer, one.path) for one in errors} == {("flag", "max_price"), ("profile", "spot_policy")}


def test_flags_and_profile_cannot_make_another_kind_or_name_of_it() -> None:
    (error,) = refused(TASK, flags={"type": "service"})
    assert (error.layer, error.path) == ("flag", "type")
    reading = read(TASK | {"name": "mine"}, profile={"name": "large", "default": True})
    assert isinstance(reading.configuration, Task)
    assert reading.configuration.name == "mine"


def test_a_fleet_takes_from_a_profile_what_fleets_have() -> None:
    reading = read({"type": "fleet", "nodes": 1}, profile={"name": "p", "max_price": 2, "max_duration": "1h"})
    assert reading.invalid == []
    assert reading.layered.mapping == {"type": "fleet", "nodes": 1, "max_price": 2}
    assert reading.layered.origin("max_price").words() == "profile p"


@pytest.mark.parametrize(
    "configuration",
    [
        TASK,
        {"type": "service", "port": 80, "image": "i"},
        {"type": "dev-environment"},
        {"type": "fleet", "nodes": 1},
        {"type": "volume", "backend": "aws", "region": "r", "size": "1GB"},
        {"type": "gateway", "name": "g1", "backend": "aws", "region": "r"},
    ],
    ids=lambda one: one["type"],
)
def test_nothing_that_is_in_force_is_left_out_of_what_is_shown(configuration: dict[str, Any]) -> None:
    reading = read(configuration)
    shown = {one.path: one for one in reading.effective}
    assert set(type(reading.configuration).model_fields) <= shown.keys()
    assert all(one.label and one.value for one in reading.effective)
    written = {path for path, one in shown.items() if one.origin.layer == "configuration"}
    assert {path.partition(".")[0] for path in written} == configuration.keys()


def test_nothing_secret_is_shown() -> None:
    configuration = TASK | {
        "image": "i",
        "env": {"TOKEN": "hunter2"},
        "registry_auth": {"username": "me", "password": "hunter2"},
        "notify": [{"url": "https://hooks.example/hunter2"}],
        "repos": ["https://me:hunter2@host/a/b"],
    }
    shown = str(read(configuration).effective)
    assert "TOKEN" in shown
    assert "hunter2" not in shown


def test_what_is_shown_of_a_huge_configuration_is_bounded() -> None:
    env = {f"VARIABLE_{number}": "x" * 20 for number in range(4000)}
    shown = read(TASK | {"env": env, "tags": {f"k{number}": "v" for number in range(2000)}}).effective
    assert sum(len(one.model_dump_json()) for one in shown) < 64 * 1024


def test_an_ordinary_plan_is_short_and_leaves_out_nothing_that_was_written() -> None:
    reading = layered("stop_grace", "3s", NOTHING, NOTHING)
    labels = [one.label for one in brief(reading.effective)]
    assert "stop grace" in labels
    assert "shell" not in labels
    assert "shell" in [one.label for one in brief(read(TASK | {"shell": "sh"}).effective)]
    assert len(labels) < 25


# --- the fleet ----------------------------------------------------------------------------------------------------


def under(fleet: dict[str, Any], **written: Any) -> dict[str, tuple[str, str]]:
    """By path, what is in force on this fleet, and what says so."""
    reading = read(TASK | written)
    parsed = spec.parse_fleet({"type": "fleet", "nodes": 1} | fleet)
    values = under_fleet(effective_values(reading.configuration, reading.layered), parsed, "gpus")
    return {one.path: (one.value, one.origin.words()) for one in values}


@pytest.mark.parametrize(
    ("fleet", "run", "value", "origin"),
    [
        (NOTHING, NOTHING, "5m", "default"),
        ("1h", NOTHING, "1h", "fleet gpus"),
        ("off", NOTHING, "off", "fleet gpus"),
        (NOTHING, "1h", "1h", "configuration"),
        (NOTHING, "off", "off", "configuration"),
        ("10m", "1h", "10m", "fleet gpus"),
        ("1h", "10m", "10m", "configuration"),
        ("1h", "off", "1h", "fleet gpus"),
        ("off", "1h", "1h", "configuration"),
    ],
)
def test_the_shorter_idle_duration_holds_of_those_that_are_said(
    fleet: Any, run: Any, value: str, origin: str
) -> None:
    rows = under(
        {} if fleet is NOTHING else {"idle_duration": fleet}, **({} if run is NOTHING else {"idle_duration": run})
    )
    assert rows["idle_duration"] == (value, origin)


def test_a_fleet_adds_its_tags_and_narrows_where_a_run_may_go() -> None:
    fleet: dict[str, Any] = {
        "tags": {"team": "ml", "cost": "7"},
        "regions": ["EU", "us"],
        "backends": ["local"],
        "max_price": 2,
        "spot_policy": "spot",
        "resources": {"memory": "64GB.."},
    }
    rows = under(fleet, tags={"team": "mine"}, regions=["eu", "ap"], spot_policy="auto", max_price=3)
    assert rows["tags"] == ("team=mine, cost=7", "configuration")
    assert (rows["tags.team"], rows["tags.cost"]) == (("mine", "configuration"), ("7", "fleet gpus"))
    assert (rows["regions"], rows["backends"]) == (("eu", "fleet gpus"), ("local", "fleet gpus"))
    assert (rows["max_price"], rows["spot_policy"]) == (("$2/h", "fleet gpus"), ("spot", "fleet gpus"))
    assert rows["resources.memory"] == ("64GB..", "fleet gpus")
    kept = under(fleet, regions=["us"], max_price=1, resources={"memory": "16GB"})
    assert (kept["regions"], kept["max_price"]) == (("us", "configuration"), ("$1/h", "configuration"))
    assert kept["resources.memory"] == ("16GB", "configuration")
