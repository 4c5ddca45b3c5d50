"""Rules about several fields: every problem at once, at its own path, and none that only follows from another."""

from __future__ import annotations

from typing import get_args

import pytest
from pydantic import BaseModel

from perdure import spec
from perdure.model.errors import FieldError, InvalidConfiguration
from perdure.spec.grammar.base import Written
from perdure.spec.wording import EXAMPLES


def problems(text: str) -> list[FieldError]:
    try:
        spec.parse(spec.load_yaml(text), submitted=True)
    except InvalidConfiguration as error:
        return error.errors
    return []


def paths(text: str) -> list[str]:
    return [error.path for error in problems(text)]


def test_all_problems_are_told_with_all_mistakes() -> None:
    text = (
        "type: task\nimage: i\npython: 3.12\nmax_price: -1\nnodes: 2\ngroups:\n"
        "  - {name: a, commands: [x], ports: [0]}\n  - {name: a}\n"
    )
    assert paths(text) == ["python", "max_price", "nodes", "groups[0].ports[0]", "groups[1].name"]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("type: task\ncomands: [x]", "comands"),
        ("type: task\ncommands: x", "commands"),
        ("type: task\ngroups: [{command: [x]}]", "groups[0].command"),
        ("type: task\ngroups: [{commands: [true]}]", "groups[0].commands[0]"),
        ("type: service\nport: 80\nimage: i\nreplicas: 1..x\nscaling: {metric: rps, target: 1}", "replicas"),
        ("type: service\nport: 80\nimage: i\nreplicas: 1..2\nscaling: {metric: rps, target: 0}", "scaling.target"),
        ("type: volume\nbackend: aws\nregion: r\nsize: much", "size"),
        ("type: fleet\nnods: 1", "nods"),
    ],
)
def test_nothing_is_told_that_only_follows_from_another_mistake(text: str, path: str) -> None:
    assert paths(text) == [path]


def test_rules_are_asked_though_something_required_is_missing() -> None:
    assert set(paths("type: service\ndocker: true\npython: 3.12")) == {"port", "commands", "python"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("docker: true\nimage: i\nnvcc: true", ["image", "nvcc"]),
        ("image: i\nnvcc: true", ["nvcc"]),
        ("volumes: ['v:/a', '/h:/a', 'v:/b']", ["volumes[1]", "volumes[2]"]),
        ("name: me\ndepends_on: [me, other, {run: other, on: ended}]", ["depends_on[0]", "depends_on[2]"]),
        ("resources: {gpu: MI300X, cpu: arm}", ["resources.cpu", "resources.gpu"]),
        ("image: i\nresources: {gpu: MI300X, cpu: arm}", []),
        ("docker: true\nresources: {gpu: MI300X, cpu: arm}", ["resources.cpu"]),
    ],
)
def test_of_a_task(text: str, found: list[str]) -> None:
    assert sorted(paths(f"type: task\ncommands: [x]\n{text}")) == sorted(found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("image: i\ngateway: false\nhttps: false\nrate_limits: [{rps: 1}]", ["https", "rate_limits"]),
        ("image: i\nschedule: {cron: '0 8 * * *'}\nreplicas: ..2\nscaling: {metric: rps, target: 1}", ["schedule"]),
        ("image: i\nrate_limits: [{rps: 1}, {rps: 2}]", ["rate_limits[1].prefix"]),
        ("image: i\nprobes: [{type: http}, {type: http}]", ["probes[1]"]),
        ("image: i\nprobes: [{type: http, method: get, body: x}]", ["probes[0].body"]),
        ("groups: [{image: i}]", ["groups[0].count"]),
        ("image: i\nreplicas: 1\ngroups: [{count: 1}]", ["replicas"]),
        ("groups: [{count: 1, commands: [x], resources: {gpu: amd}}]", ["groups[0].resources.gpu"]),
        ("image: i\ngroups: [{count: 1, python: 3.12}]", ["groups[0].python"]),
    ],
)
def test_of_a_service(text: str, found: list[str]) -> None:
    assert paths(f"type: service\nport: 80\n{text}") == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("hosts: [a, b]", ["ssh_config.user", "ssh_config.identity_file"]),
        ("user: u\nidentity_file: k\nhosts: [a, a, {hostname: a, port: 2222}]", ["ssh_config.hosts[1]"]),
        ("identity_file: k\nhosts: [a, {hostname: b, user: u}]", ["ssh_config.hosts[0].user"]),
    ],
)
def test_of_hosts(text: str, found: list[str]) -> None:
    indented = text.replace("\n", "\n  ")
    assert sorted(paths(f"type: fleet\nssh_config:\n  {indented}")) == sorted(found)


def test_of_a_gateway() -> None:
    text = (
        "type: gateway\nbackend: azure\nregion: r\npublic_ip: false\nreplicas: 4\ncertificate: {type: acm, arn: a}"
    )
    assert paths(text) == ["public_ip", "replicas", "certificate"]


def test_a_submission_is_asked_alone_of_what_was_read() -> None:
    run = spec.parse_run(spec.load_yaml("type: task\ncommands: [x]\nresources: {gpu: amd}"))
    assert [error.path for error in spec.invalid(run)] == ["resources.gpu"]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("schedule: {cron: '0 8 * * *', timezone: Europe/Berln}", "schedule.timezone"),
        ("retry: {on_exit_codes: [256]}", "retry.on_exit_codes[0]"),
        ("retry: {on_exit_codes: [9..1]}", "retry.on_exit_codes[0]"),
        ("retry: {max_attempts: 0}", "retry.max_attempts"),
        ("retry: {scope: gang}", "retry.scope"),
        ("stop_signal: SIGKILL", "stop_signal"),
        ("max_cost: 0", "max_cost"),
        ("deadline: 2026-12-31T18:00:00", "deadline"),
        ("deadline: 0", "deadline"),
        ("depends_on: [A]", "depends_on[0]"),
        ("notify: [{url: ftp://x}]", "notify[0].url"),
        ("notify: [{url: https://x, on: [finished]}]", "notify[0].on[0]"),
    ],
)
def test_what_is_wrong_in_fields_of_ours(text: str, path: str) -> None:
    assert paths(f"type: task\ncommands: [x]\n{text}") == [path]


def test_profiles_are_read_with_every_mistake_and_its_line() -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        spec.parse_profiles(spec.load_yaml("profiles:\n- name: a\n  max_price: -1\n- image: i\n"))
    assert [(error.path, error.line) for error in caught.value.errors] == [
        ("profiles[0].max_price", 3),
        ("profiles[1].image", 4),
    ]
    first, second = spec.parse_profiles(spec.load_yaml("profiles: [{name: a, retry: off}, {default: yes}]"))
    assert (first.name, first.retry, second.default) == ("a", "off", True)


def test_flags_are_a_part_of_a_run() -> None:
    flags = spec.parse_flags({"resources": {"gpu": "A100"}, "ports": ["80"]}, "task")
    assert flags.model_fields_set == {"resources", "ports"}
    with pytest.raises(InvalidConfiguration) as caught:
        spec.parse_flags({"resources": {"gpu": "A100:A10"}, "max_price": "x"}, "service")
    assert {error.path for error in caught.value.errors} == {"resources.gpu", "max_price"}


def test_weekdays_by_number_are_named() -> None:
    run = spec.parse_run(spec.load_yaml("type: task\ncommands: [x]\nschedule: {cron: '*/5 8 1 1 1-5/2'}"))
    (warning,) = spec.warnings(run)
    assert "1 is Monday, 5 is Friday" in warning


def test_every_required_field_has_an_example_to_write() -> None:
    lacking = {
        f"{model.__name__}.{name}"
        for model in _models(Written)
        for name, field in model.model_fields.items()
        if field.is_required() and name not in EXAMPLES and not get_args(field.annotation)
    }
    assert lacking == set()


def _models(model: type[BaseModel]) -> set[type[BaseModel]]:
    found = {below for below in model.__subclasses__() if below.__module__.startswith("perdure.spec")}
    return found.union(*(_models(below) for below in found))
