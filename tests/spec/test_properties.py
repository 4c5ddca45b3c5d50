"""Every grammar, as it is written and as it is nearly written; whole configurations; and anything at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, TypeAdapter, ValidationError

from perdure import spec
from perdure.model.errors import InvalidConfiguration
from perdure.spec import reading
from perdure.spec.grammar import (
    base,
    cron,
    durations,
    env,
    hardware,
    lifecycle,
    mounts,
    names,
    ports,
    ranges,
    retry,
)
from perdure.spec.models import fleet, notices, profile, run, service, traffic
from tests.spec.grammars import hardware as some_hardware
from tests.spec.grammars import kinds, misses, places, policies, scalars
from tests.spec.grammars import names as some_names
from tests.spec.grammars import traffic as some_traffic
from tests.spec.grammars.said import Grammar, unmeant
from tests.spec.support import mistakes

pytestmark = pytest.mark.filterwarnings("error")
"""pydantic warns when it writes a value that is not of its field's type."""

Reading = Callable[[Any], Any]


def of(kind: Any) -> Reading:
    """Reads a value of this type, and writes it as JSON."""
    adapter = TypeAdapter[Any](kind)
    return lambda written: adapter.dump_python(adapter.validate_python(written), mode="json")


def in_field(model: type[BaseModel], field: str, **others: object) -> Reading:
    """As ``of``, for what stands in one field of a model."""
    return lambda written: model.model_validate({**others, field: written}).model_dump(mode="json")[field]


IN_RESOURCES = {field: in_field(hardware.ResourcesSpec, field) for field in ("cpu", "gpu", "disk")}

GRAMMARS: dict[str, tuple[Reading, Grammar, misses.Misses]] = {
    "whole": (of(base.Whole), scalars.wholes(), misses.wholes),
    "number": (of(base.Number), scalars.numbers(0, 1000), misses.numbers),
    "switch": (of(base.Switch), scalars.switches(), misses.switches),
    "text": (of(base.Text), scalars.texts(), misses.texts),
    "duration": (of(durations.Duration), scalars.durations() | scalars.FRACTIONS, misses.durations),
    "offable": (of(durations.OffableDuration), scalars.offable(), misses.offable),
    "idle": (
        of(durations.IdleDuration),
        scalars.idle(),
        misses.offable.filter(lambda value: "-" not in str(value)),
    ),
    "memory": (of(ranges.Memory), scalars.memory(), misses.memory),
    "counts": (of(ranges.Count), scalars.counts, misses.counts),
    "memory range": (of(ranges.MemorySpan), scalars.memory_spans, misses.spans),
    "cpu": (IN_RESOURCES["cpu"], some_hardware.cpus(), misses.cpus),
    "gpu": (IN_RESOURCES["gpu"], some_hardware.gpus(), misses.gpus),
    "disk": (IN_RESOURCES["disk"], some_hardware.disks(), misses.disks),
    "resources": (of(hardware.ResourcesSpec), some_hardware.resources(), misses.resources),
    "port": (of(ports.Port), places.ports(), misses.ports),
    "service port": (
        of(ports.ServicePort),
        places.service_ports(),
        misses.ports | st.just("*:8000"),
    ),
    "mount": (of(mounts.Mount), places.mounts(), misses.mounts),
    "file": (of(mounts.FileItem), places.files(), misses.files),
    "repository": (of(mounts.Repo), places.repositories(), misses.repositories),
    "environment": (of(env.Env), some_names.environments(), misses.environments),
    "tags": (of(names.Tags), some_names.tags(), misses.tags),
    "name": (of(names.ResourceName), some_names.resource_names, misses.names),
    "group name": (of(names.GroupName), some_names.group_names, misses.group_names),
    "reference": (of(names.Ref), some_names.references(), misses.references),
    "backend": (of(names.BackendName), some_names.backends, misses.backends),
    "user": (of(names.User), some_names.users(), misses.users),
    "shell": (of(names.Shell), some_names.shells, misses.shells),
    "python": (of(names.Python), some_names.pythons, misses.pythons),
    "working_dir": (of(names.WorkingDir), some_names.working_dirs, misses.working_dirs),
    "cron": (of(cron.CronList), policies.crons(), misses.crons),
    "retry": (of(retry.Retry), policies.retries(), misses.retries),
    "exit codes": (of(lifecycle.ExitCodes), policies.exit_codes(), misses.exit_codes),
    "signal": (of(lifecycle.SignalName), policies.signals(), misses.signals),
    "deadline": (of(lifecycle.Deadline), policies.deadlines(), misses.deadlines),
    "notice": (of(notices.Notice), policies.notices(), misses.notices),
    "dependency": (
        of(tuple[notices.Dependency, ...]),
        policies.dependencies(),
        misses.dependencies.map(lambda value: [value]),
    ),
    "time zone": (of(lifecycle.TimeZone), policies.zones, misses.zones),
    "schedule": (of(profile.ScheduleSpec), policies.schedules(), misses.crons.map(lambda value: {"cron": value})),
    "cost": (
        in_field(profile.Profile, "max_cost"),
        scalars.numbers(0.001, 1000),
        misses.costs.filter(lambda value: value is not None),
    ),
    "profiles": (of(profile.ProfilesFile), kinds.profiles(), misses.profiles),
    "utilization": (of(profile.UtilizationPolicy), policies.utilization(), misses.utilization),
    "instance": (of(profile.InstanceChoice), policies.instances(), misses.instances),
    "probe": (of(traffic.Probe), some_traffic.probes(), misses.probes),
    "rate limit": (of(traffic.RateLimit), some_traffic.rate_limits(), misses.rate_limits),
    "scaling": (of(service.Scaling), some_traffic.scaling(), misses.scaling),
    "model": (of(traffic.Model), some_traffic.models(), misses.models),
    "nodes of a fleet": (
        in_field(fleet.FleetConfiguration, "nodes", type="fleet"),
        kinds.fleet_nodes(),
        misses.nodes,
    ),
}

IN_WORDS = {
    "perdure",
    "missing",
    "extra_forbidden",
    "literal_error",
    "greater_than",
    "greater_than_equal",
    "less_than_equal",
    "list_type",
    "tuple_type",
    "dict_type",
    "model_type",
    "model_attributes_type",
    "string_too_short",
}
"""Mistakes that have a sentence of ours."""


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_what_a_grammar_writes_is_read_as_it_is_meant(grammar: str) -> None:
    read, written, _ = GRAMMARS[grammar]

    @settings(max_examples=60)
    @given(written)
    def means(said: Any) -> None:
        assert unmeant(read(said.written), said.meaning) is None

    means()


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_what_is_nearly_right_is_refused_in_words(grammar: str) -> None:
    read, _, nearly = GRAMMARS[grammar]

    @settings(max_examples=40)
    @given(nearly)
    def refused(value: Any) -> None:
        with pytest.raises(ValidationError) as caught:
            read(value)
        assert {error["type"] for error in caught.value.errors()} <= IN_WORDS

    refused()


@pytest.mark.parametrize("kind", kinds.KINDS)
def test_a_configuration_means_what_its_parts_mean_and_is_not_said_to_be_wrong(kind: str) -> None:
    schema = Draft202012Validator(spec.json_schema(kind))

    @settings(max_examples=40)
    @given(kinds.KINDS[kind])
    def means(said: Any) -> None:
        found = reading.read(said.written)
        assert unmeant(found.configuration.model_dump(mode="json"), said.meaning) is None
        assert found.invalid == []
        assert [error.message for error in schema.iter_errors(said.written)] == []

    means()


def _given(values: misses.Misses) -> misses.Misses:
    """Where null is the same as saying nothing."""
    return values.filter(lambda value: value is not None)


def _item(values: misses.Misses) -> misses.Misses:
    return values.map(lambda value: [value])


WRONG: dict[str, misses.Misses] = {
    "name": _given(misses.names),
    "user": _given(misses.users),
    "shell": _given(misses.shells),
    "python": _given(misses.pythons),
    "working_dir": _given(misses.working_dirs),
    "env": misses.environments,
    "resources": misses.resources,
    "volumes": _item(misses.mounts),
    "files": _item(misses.files),
    "repos": _item(misses.repositories),
    "backends": _item(misses.backends),
    "retry": _given(misses.retries),
    "max_duration": misses.offable,
    "tags": _given(misses.tags),
    "fleets": _item(misses.references),
    "instances": _item(misses.instances),
    "schedule": _given(misses.crons).map(lambda value: {"cron": value}),
    "ports": _item(misses.ports),
    "typo": st.just(1),
}
"""By field of a task."""


@settings(max_examples=80)
@given(kinds.tasks(), st.dictionaries(st.sampled_from(sorted(WRONG)), st.none(), min_size=1, max_size=5), st.data())
def test_every_mistake_is_told_at_once_each_in_its_line(
    said: Any, fields: dict[str, None], data: st.DataObject
) -> None:
    wrong = {field: data.draw(WRONG[field], field) for field in fields}
    mapping = said.written | wrong
    text = "\n".join(f"{key}: {json.dumps(value)}" for key, value in mapping.items())
    with pytest.raises(InvalidConfiguration) as caught:
        spec.parse(spec.load_yaml(text))
    for error in caught.value.errors:
        field = error.path.partition(".")[0].partition("[")[0]
        assert field in wrong
        assert error.line == list(mapping).index(field) + 1
        assert 0 < len(error.message) < 400
    assert {error.path.partition(".")[0].partition("[")[0] for error in caught.value.errors} == set(wrong)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
REFERENCES = ["${{ run.args }}", "${{", "$$"]
SHORT = st.sampled_from(
    ["task", "8", "2..8", "off", "A100:2", "16GB", "/a:/b", "80:80", "A=1", "-1", "\0", "\ud800", *REFERENCES]
)
JSON = st.recursive(
    SCALARS | SHORT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8) | SHORT, inner, max_size=4),
    max_leaves=12,
)
KEYS = st.sampled_from(sorted(run.Task.model_fields)) | st.sampled_from(
    ["min", "max", "count", "size", "on_events"]
)
NEARLY = st.recursive(
    SCALARS | SHORT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | SHORT, inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_resolved_or_refused(anything: Any) -> None:
    _told(anything)


@settings(max_examples=150)
@given(st.dictionaries(KEYS, NEARLY, max_size=8))
def test_anything_like_a_task_is_resolved_or_refused(fields: dict[str, Any]) -> None:
    _told({"type": "task", "commands": ["x"]} | fields)
    _told({**fields, "type": "task"})


def _told(anything: object) -> None:
    for error in mistakes(anything):
        json.dumps(error.model_dump(mode="json")).encode()
        assert error.message
        assert len(error.message) < 400
        assert "\n" not in error.message


@given(scalars.counts)
def test_ranges_in_words_are_read_again(said: Any) -> None:
    found = ranges.CountRange.model_validate(of(ranges.Count)(said.written))
    assert of(ranges.Count)(found.words()) == said.meaning
