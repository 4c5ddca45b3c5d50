"""JSON Schema (draft 2020-12) of what users write, made from the models, for editors and for other languages.

What a field is for is its docstring, what a value looks like its grammar says (``grammar/forms.py``), and what may
stand together is left to ``perdure validate``: a schema accepts whatever the parser accepts, and more.

Three habits of the models' docstrings are read here: "``5m`` if unset" is a field's default, "such as ``a`` or
``b``" are examples of it, and a last sentence "Ours." says that dstack does not have it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema
from pydantic_core import core_schema

from perdure.model.durations import in_words
from perdure.spec.document import load_yaml
from perdure.spec.grammar.base import TEXT_SCHEMA, not_empty, number, switch, text, whole
from perdure.spec.grammar.forms import SHORT_SWITCH_WORDS, Schema, or_null, scalar
from perdure.spec.models.fleet import FleetConfiguration
from perdure.spec.models.profile import ProfilesFile
from perdure.spec.models.standing import CloudVolume, Gateway, KubernetesVolume
from perdure.spec.parsing import RUN_TYPES

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_TYPES: dict[str, tuple[type[BaseModel], ...]] = {
    **{kind: (model,) for kind, model in RUN_TYPES.items()},
    "fleet": (FleetConfiguration,),
    "volume": (CloudVolume, KubernetesVolume),
    "gateway": (Gateway,),
}
KINDS = ("any", *_TYPES, "profiles")
"""What has a schema: a configuration of any type, of each one, and the file of profiles."""

_DEFAULT = re.compile(r"``([^`]+)`` if unset")
_EXAMPLES = re.compile(r"[sS]uch as (``[^`]+``(?:(?:, | or | and )``[^`]+``)*)")
_OURS = " Ours."


def json_schema(kind: str = "any") -> Schema:
    """The schema of one kind of file.

    Raises:
        KeyError: no such kind; ``KINDS`` has them all.
    """
    if kind == "any":
        models = _TYPES
        found = definitions(*(model for forms in models.values() for model in forms))
        described = {"enum": list(models), "description": "What it is."}
        body = _by("type", described, {name: _one_of(forms, found) for name, forms in models.items()})
        return _document("any configuration", body, found)
    forms = (ProfilesFile,) if kind == "profiles" else _TYPES[kind]
    found = definitions(*forms)
    return _document(kind, _one_of(forms, found), found)


def _document(title: str, body: Schema, found: dict[str, Schema]) -> Schema:
    """A body at the top of its document, not behind a reference: not all editors follow it there."""
    if name := body.get("$ref"):
        body = found.pop(name.rpartition("/")[2])
    return {"$schema": DIALECT, **body, "title": f"Perdure: {title}", "$defs": found}


def _one_of(forms: tuple[type[BaseModel], ...], found: dict[str, Schema]) -> Schema:
    """The model, or the one of several that ``backend`` chooses."""
    if len(forms) == 1:
        return {"$ref": f"#/$defs/{forms[0].__name__}"}
    choices: dict[str, Schema] = {}
    for form in forms:
        backends = found[form.__name__]["properties"]["backend"]
        names = backends["enum"] if "enum" in backends else [backends["const"]]
        choices |= {name: {"$ref": f"#/$defs/{form.__name__}"} for name in names}
    return _by("backend", {"enum": list(choices)}, choices)


def _by(field: str, described: Schema, choices: dict[str, Schema]) -> Schema:
    """What the field's value says. (With ``oneOf``, editors show mistakes of alternatives that are not meant.)"""
    return {
        "type": "object",
        "required": [field],
        "properties": {field: described},
        "allOf": [
            {"if": {"properties": {field: {"const": value}}, "required": [field]}, "then": schema}
            for value, schema in choices.items()
        ],
    }


def definitions(*models: type[BaseModel]) -> dict[str, Schema]:
    """Of these and of all that they need, by the names of their classes."""
    modes = [(model, "validation") for model in models]
    _, document = models_json_schema(cast(Any, modes), ref_template="#/$defs/{model}", schema_generator=_Generator)
    return document["$defs"]


_BASE_FORMS: dict[Callable[..., Any], Schema] = {
    whole: scalar("whole number", "integer", "string", pattern="[+-]?[0-9][0-9_]*"),
    number: scalar(
        "number", "number", "string", pattern=r"[+-]?([0-9][0-9_]*(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
    ),
    switch: scalar(
        "true or false", "boolean", "integer", "string", pattern=SHORT_SWITCH_WORDS, hint="write true or false"
    ),
    text: TEXT_SCHEMA,
}
"""The grammars that stand before a type of pydantic's own, which says the bounds."""


class _Generator(GenerateJsonSchema):
    """Pydantic's schemas, with our short forms, in few alternatives, and without what says nothing."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False  # a title is what kind of value it is, and that the grammar says

    def model_schema(self, schema: core_schema.ModelSchema) -> Schema:
        found = super().model_schema(schema)
        found["title"] = title_of(cast(type[BaseModel], schema["cls"]).__name__)
        for described in (found, *found.get("properties", {}).values()):
            _read_description(described)
        return found

    def function_before_schema(self, schema: core_schema.BeforeValidatorFunctionSchema) -> Schema:
        inner = super().function_before_schema(schema)
        form = _BASE_FORMS.get(schema["function"]["function"])
        return inner if form is None else inner | form

    def function_after_schema(self, schema: core_schema.AfterValidatorFunctionSchema) -> Schema:
        inner = super().function_after_schema(schema)
        return inner | {"minItems": 1} if schema["function"]["function"] is not_empty else inner

    def dict_schema(self, schema: core_schema.DictSchema) -> Schema:
        found = super().dict_schema(schema)
        return found | {"additionalProperties": False} if "patternProperties" in found else found

    def nullable_schema(self, schema: core_schema.NullableSchema) -> Schema:
        return or_null(self.generate_inner(schema["schema"]))

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> Schema:
        inner = self.generate_inner(schema["schema"])
        default = _written(schema.get("default"), inner.get("title", ""))
        return inner if default is None else inner | {"default": default}


def title_of(name: str) -> str:
    """``HostMount`` as ``host mount``, ``RetrySpec`` as ``retry``."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.removesuffix("Spec")).lower()


def _written(default: object, title: str) -> object:
    """A default as a user would write it; None for what says nothing."""
    if isinstance(default, BaseModel):
        return cast(str, words()) if (words := getattr(default, "words", None)) else None
    if title.startswith("duration") and isinstance(default, int):
        return in_words(default)
    if isinstance(default, tuple):
        default = list(cast(tuple[object, ...], default))
    return None if default in (None, [], {}, "") else default


def _read_description(field: Schema) -> None:
    text = field.get("description", "")
    if text.endswith(_OURS):
        text, field["x-ours"] = text.removesuffix(_OURS), True
    if default := _DEFAULT.search(text):
        field["default"] = _value(default[1])
    if examples := _EXAMPLES.search(text):
        field["examples"] = [_value(example) for example in re.findall("``([^`]+)``", examples[1])]
    if text:
        field["description"] = text.replace("``", "")
    if "``" in text:
        field["markdownDescription"] = text.replace("``", "`")  # what editors that know it prefer


def _value(text: str) -> Any:
    """What a piece of YAML means."""
    return load_yaml(f"value: {text}")["value"]
