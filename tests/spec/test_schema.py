"""The JSON Schema accepts what the parser accepts, and tells an editor of the mistakes that are made most."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from perdure import spec
from perdure.model.errors import InvalidConfiguration
from tests.spec.support import fixtures


@cache
def checker(kind: str) -> Draft202012Validator:
    return Draft202012Validator(spec.json_schema(kind))


def flaws(text: str, kind: str = "any") -> list[str]:
    """Where the schema finds something wrong: ``resources.memory``."""
    errors = checker(kind).iter_errors(dict(spec.load_yaml(text)))
    return sorted({".".join(map(str, error.path)) for error in errors})


@pytest.mark.parametrize("kind", spec.KINDS)
def test_each_kind_has_a_schema_that_is_one(kind: str) -> None:
    schema = spec.json_schema(kind)
    Draft202012Validator.check_schema(schema)
    assert json.loads(json.dumps(schema)) == schema
    assert schema["title"] == ("Perdure: any configuration" if kind == "any" else f"Perdure: {kind}")


def test_every_published_configuration_passes_in_its_own_schema_and_in_that_of_any() -> None:
    wrong: dict[str, list[str]] = {}
    for path in sorted((fixtures() / "configs").glob("*.yml")):
        text = path.read_text()
        kind = spec.load_yaml(text)["type"]
        if found := flaws(text) + flaws(text, kind):
            wrong[path.name] = found
    assert wrong == {}


def test_nothing_that_the_parser_accepts_is_called_wrong() -> None:
    accepted = [text for text in probes() if accepts(text)]
    assert len(accepted) > 200
    assert {text: found for text in accepted if (found := flaws(text))} == {}


def test_most_of_what_the_parser_refuses_is_called_wrong() -> None:
    refused = [text for text in probes() if not accepts(text)]
    assert sum(bool(flaws(text)) for text in refused) > len(refused) / 2


def probes() -> Iterator[str]:
    for line in (fixtures() / "probes.jsonl").read_text().splitlines():
        text: str = json.loads(line)["config"]
        try:
            spec.load_yaml(text)
        except InvalidConfiguration:
            continue
        yield text


def accepts(text: str) -> bool:
    try:
        spec.parse(spec.load_yaml(text))
    except InvalidConfiguration:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("comands: [x]", ""),
        ("resources: {gpuu: 1}", "resources"),
        ("resources: {memory: 16G}", "resources.memory"),
        ("resources: {cpu: 2..a}", "resources.cpu"),
        ("spot_policy: sopt", "spot_policy"),
        ("max_duration: 2H", "max_duration"),
        *((f"{field}: {less}", field) for field in ("max_duration", "stop_grace") for less in (-1, -0.5, -1e-9)),
        ("stop_duration: -0.5", "stop_duration"),
        ("retry: {duration: -0.5}", "retry"),
        ("idle_duration: 1h30m", "idle_duration"),
        ("retry: maybe", "retry"),
        ("retry: {on_events: []}", "retry"),
        ("retry: {on_exit_codes: [300]}", "retry"),
        ("nodes: 0", "nodes"),
        ("priority: 101", "priority"),
        ("python: 3.8", "python"),
        ("privileged: maybe", "privileged"),
        ("backends: [awss]", "backends.0"),
        ("volumes: [/a]", "volumes.0"),
        ("volumes: [{name: x}]", "volumes.0"),
        ("files: [{local_path: a}]", "files.0"),
        ("ports: [70000]", "ports.0"),
        ("name: My_Run", "name"),
        ("working_dir: src", "working_dir"),
        ("tags: {a b: c}", "tags"),
        ("env: [1A=b]", "env"),
        ("stop_signal: SIGKILLED", "stop_signal"),
    ],
)
def test_a_mistake_is_found_where_it_is(text: str, where: str) -> None:
    assert not accepts(f"type: task\ncommands: [x]\n{text}"), "it is no mistake"
    assert flaws(f"type: task\ncommands: [x]\n{text}") == [where]
    assert flaws(f"type: task\ncommands: [x]\n{text}", "task") == [where]


ODDLY_SPELT: dict[str, tuple[object, ...]] = {
    "resources.cpu": ("8", "1..2", "arm:8", "8:arm", "..4", "2.."),
    "resources.memory": ("8", "1..2", "16GB..", "1.5TB..2TB"),
    "resources.gpu": ("1", "A100:2", "1..2", "nvidia:A100:40GB..:1..2"),
    "resources.disk": ("100GB", "1..2"),
    "ports[]": ("80", "80:80", "*:80"),
    "files[]": ("a", "a:b"),
    "repos[]": (".", "a:b", "https://h/a:b", "git@h:o/n"),
    "volumes[]": ("a:/b", "/a:/b"),
    "max_duration": ("1h", "off", 0.5),
    "idle_duration": ("1h", "off", "-1", -0.5),
    "user": ("a", "a:b", 0.5, 1),
    "shell": ("sh", "/bin/x"),
    "working_dir": ("/a", "~/a", "~"),
    "stop_signal": ("sigint", "INT"),
    "spot_policy": ("auto",),
    "retry": ("on", "off"),
    "privileged": ("yes", "t"),
    "registry_auth.username": ("a", 0.5),
}


@pytest.mark.parametrize("field", ODDLY_SPELT)
def test_an_odd_spelling_that_the_parser_accepts_is_not_called_wrong(field: str) -> None:
    accepted = 0
    for value in ODDLY_SPELT[field]:
        for spelt in spellings(value):
            text = json.dumps({"type": "task", "commands": ["x"], "image": "i"} | at(field, spelt))
            if accepts(text):
                accepted += 1
                assert flaws(text, "task") == [], text
    assert accepted >= len(ODDLY_SPELT[field])


def spellings(value: object) -> Iterator[object]:
    """With blanks and line breaks around it and in it, and in other letters."""
    yield value
    if isinstance(value, str):
        yield from (f" {value}", f"{value} ", f"\t{value}\n", f"\n{value}", f"{value[:1]}\n{value[1:]}")
        yield from (value.replace(mark, spaced) for mark in (":", "..") for spaced in (f" {mark} ", f"\n{mark}\t"))
        yield from (value.upper(), f"+{value}", f"{value}_")


def at(path: str, value: object) -> dict[str, object]:
    """A mapping that has the value there; ``[]``: in a list."""
    name, _, rest = path.partition(".")
    inner = at(rest, value) if rest else value
    if name == "registry_auth":
        return {name: {"password": "p"} | at(rest, value)}
    return {name[:-2]: [inner]} if name.endswith("[]") else {name: inner}


@pytest.mark.parametrize(
    "text", ["name: x", "type: tsk\ncommands: [x]", "type: preset\nmodel: x", "type: volume\nsize: 1GB\nregion: r"]
)
def test_what_has_no_kind_is_found(text: str) -> None:
    assert flaws(text) != []


def test_only_the_fields_of_its_own_kind_are_known() -> None:
    assert flaws("type: task\ncommands: [x]\nide: vscode") == [""]
    assert flaws("type: dev-environment\nide: vscode") == []
    volume = "type: volume\nname: v\nsize: 1GB\nregion: r"
    assert flaws(f"{volume}\nbackend: aws") == []
    assert flaws(f"{volume}\nbackend: aws\nclaim_name: c") == [""]
    assert flaws(f"{volume}\nbackend: kubernetes\nclaim_name: c") == []


def test_profiles_have_a_schema_of_their_own() -> None:
    assert flaws("profiles:\n- name: large\n  default: yes\n  max_price: 2.5", "profiles") == []
    assert flaws("profiles:\n- name: large\n  image: x", "profiles") == ["profiles.0"]


def every(schema: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each property of a schema and of its definitions, by ``definition.name``."""
    bodies = {schema["title"]: schema, **schema["$defs"]}
    for owner, body in bodies.items():
        for name, field in body.get("properties", {}).items():
            yield f"{owner}.{name}", field


def test_short_forms_have_one_pattern_and_say_what_to_write() -> None:
    field = spec.json_schema("task")["properties"]["max_duration"]
    assert set(field["type"]) == {"number", "string", "boolean", "null"}
    assert "2h" in field["examples"]
    assert field["patternErrorMessage"].startswith("write a number and one unit")


def test_an_unknown_kind_has_none() -> None:
    with pytest.raises(KeyError):
        spec.json_schema("preset")
