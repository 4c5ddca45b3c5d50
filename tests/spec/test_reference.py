"""The reference page says what is true, and all of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, TypeAdapter

from perdure import spec
from perdure.model.errors import InvalidConfiguration
from perdure.spec import reading
from perdure.spec.defaults import default_of
from perdure.spec.grammar.base import Written
from perdure.spec.models.development import DevEnvironment
from perdure.spec.models.fleet import FleetConfiguration
from perdure.spec.models.run import Task
from perdure.spec.models.service import Service
from perdure.spec.models.standing import Gateway
from perdure.spec.reference import flow, page
from perdure.spec.schema import definitions
from perdure.spec.waiting import waits
from tests.spec.support import resolve

PAGE = Path(__file__).parents[2] / "docs" / "reference.md"
SSH = {"user": "ubuntu", "identity_file": "~/.ssh/id_ed25519", "hosts": ["10.0.0.7"]}
KINDS = [kind for kind in spec.KINDS if kind != "any"]


def test_the_page_is_current() -> None:
    hint = "it is not: python -m perdure.spec.reference > docs/reference.md"
    assert PAGE.read_text() == page(), hint


def models(of: type[BaseModel] = Written) -> Iterator[type[BaseModel]]:
    """Every mapping of the language."""
    for model in of.__subclasses__():
        yield model
        yield from models(model)


FIELDS = [
    pytest.param(model, name, id=f"{model.__name__}.{name}")
    for model in dict.fromkeys(models())
    if model.__module__.startswith(("perdure.spec.models.", "perdure.spec.grammar."))
    for name in model.model_fields
    if name in model.__annotations__
]
"""Each field, at the class that has it."""


@cache
def schemas(model: type[BaseModel]) -> dict[str, dict[str, Any]]:
    """Of the fields of a mapping."""
    return definitions(model)[model.__name__]["properties"]


def schema_of(model: type[BaseModel], name: str) -> dict[str, Any]:
    return schemas(model)[name]


def read(model: type[BaseModel], name: str, value: object) -> object:
    """As the field reads it. (Its name is there because ``Annotated`` wants something.)

    Raises:
        ValueError: it does not.
    """
    info = model.model_fields[name]
    return TypeAdapter(Annotated[info.annotation, *info.metadata, name]).validate_python(value)


@pytest.mark.parametrize(("model", "name"), FIELDS)
def test_every_field_says_what_it_is_for(model: type[BaseModel], name: str) -> None:
    assert schema_of(model, name).get("description"), "it has no docstring"


@pytest.mark.parametrize(("model", "name"), FIELDS)
def test_every_example_is_one(model: type[BaseModel], name: str) -> None:
    for example in schema_of(model, name).get("examples", []):
        read(model, name, example)
        assert read(model, name, spec.load_yaml(f"x: {flow(example)}")["x"]) == read(model, name, example)


@pytest.mark.parametrize(("model", "name"), FIELDS)
def test_a_default_is_a_value_of_its_field(model: type[BaseModel], name: str) -> None:
    schema = schema_of(model, name)
    if "default" not in schema:
        return
    meant, default = read(model, name, schema["default"]), model.model_fields[name].get_default()
    assert default is None or default == meant


@pytest.mark.parametrize("model", [Task, Service, DevEnvironment, FleetConfiguration, Gateway])
def test_a_plan_shows_the_defaults_of_the_page(model: type[BaseModel]) -> None:
    kind, shown = schemas(model)["type"]["const"], 0
    for name, field in schemas(model).items():
        default = default_of(kind, name, None)
        default = default.model_dump() if isinstance(default, BaseModel) else default
        if "default" in field and default is not None:
            assert read(model, name, field["default"]) == read(model, name, default), name
            shown += 1
    assert shown > 0


def test_to_write_a_default_changes_nothing() -> None:
    least = {"type": "task", "commands": ["x"]}
    plain, tried = meaning(least), 0
    for name, field in schemas(Task).items():
        if "default" in field and not waits("task", {name: field["default"]}, name):
            assert meaning({**least, name: field["default"]}) == plain, name
            tried += 1
    assert tried > 10


def meaning(mapping: dict[str, object]) -> dict[str, object]:
    """What is in force, without what was written and where."""
    return resolve(mapping).model_dump(mode="json", exclude={"configuration", "shown", "warnings"})


def test_every_example_of_the_page_fits_the_schema() -> None:
    sections = re.split(r"^##+ ", page(), flags=re.MULTILINE)
    tried = 0
    for kind in KINDS:
        section = next(text for text in sections if text.startswith(f"{kind}\n"))
        validator = Draft202012Validator(spec.json_schema(kind))
        for example in re.findall(r"\| `(\w+: .*)` \|$", section, flags=re.MULTILINE):
            written = spec.load_yaml(example.replace("\\|", "|"))
            wrong = [error for error in validator.iter_errors(dict(written)) if error.path]
            assert wrong == [], example
            tried += 1
    assert tried > 30


LEAST = {
    "task": ({"type": "task", "commands": ["x"]}, {"type": "task"}),
    "service": (
        {"type": "service", "port": 80, "commands": ["x"]},
        {"type": "service", "port": 80, "commands": ["x"], "replicas": {"min": 1, "max": 4}},
        {"type": "service", "port": 80},
    ),
    "dev-environment": ({"type": "dev-environment"}, {"type": "dev-environment", "ide": "vscode"}),
    "fleet": ({"type": "fleet", "nodes": 1}, {"type": "fleet"}, {"type": "fleet", "ssh_config": SSH}),
    "volume": ({"type": "volume", "backend": "aws", "region": "x", "size": 1},),
    "gateway": ({"type": "gateway", "backend": "aws", "region": "x"},),
}
"""Of each kind, what an example of one of its fields may need beside it."""


@pytest.mark.parametrize("kind", LEAST)
def test_every_example_of_the_page_is_right_in_a_file_of_its_kind(kind: str) -> None:
    section = next(text for text in re.split(r"^##+ ", page(), flags=re.MULTILINE) if text.startswith(f"{kind}\n"))
    examples = re.findall(r"\| `(\w+: .*)` \|$", section, flags=re.MULTILINE)
    assert examples
    for example in examples:
        written = spec.load_yaml(example.replace("\\|", "|"))
        assert any(is_right({**least, **written}) for least in LEAST[kind]), example


def is_right(mapping: dict[str, object]) -> bool:
    try:
        return not reading.read(mapping).invalid
    except InvalidConfiguration:
        return False


def test_links_of_the_page_lead_to_its_headings() -> None:
    headings = {
        re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-")
        for heading in re.findall(r"^##+ (.+)$", page(), flags=re.MULTILINE)
    }
    targets = set(re.findall(r"\]\(#([^)]+)\)", page()))
    assert targets <= headings
    assert len(targets) > 20


def test_the_page_tells_what_is_ours_and_what_has_to_wait() -> None:
    assert re.search(r"`max_attempts` \*ours\* \| whole number, at least 1", page())
    assert re.search(r"`utilization_policy` \*not yet\* ", page())
    assert re.search(r"`max_duration` \| duration or off \| `off`", page())
