"""Environment: a list of ``NAME=value`` or ``NAME`` (the value is supplied when the run is submitted), or a map.

No message repeats a value: it may be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

from pydantic import (
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainValidator,
    Tag,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, core_schema

from perdure.spec.grammar.base import Written, by_form, digits, is_mapping, told, unprintable, wrong

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_PASSED_ON = re.compile(r"[^=\s\x00-\x1f\x7f]+")


class Supplied(Written):
    """A variable whose value comes with the submission, not from the file."""

    key: str
    """Its name, such as ``TOKEN``."""


def is_name(name: str) -> bool:
    """Whether a process can be given a variable of this name, and a shell can pass it on (it need not be able to
    refer to it: ``A-B``)."""
    return bool(_PASSED_ON.fullmatch(name)) and "${{" not in name and not unprintable(name)


Environment: TypeAlias = Mapping[str, str | Supplied]


def env_item(value: object) -> tuple[str, str | Supplied]:
    """``NAME=value``, ``NAME=`` or ``NAME``."""
    if not isinstance(value, str):
        kind = told(value)
        raise wrong(f"is {kind}, where NAME=value is wanted", "a list of variables has `- NAME=value` in each line")
    name, equals, content = value.partition("=")
    if not _NAME.fullmatch(name):
        shown = f": {told(name)}" if equals else ""
        raise wrong(f"does not begin with the name of a variable{shown}", "write NAME=value or NAME")
    return name, _content(content, name) if equals else Supplied(key=name)


def env_value(value: object) -> str | Supplied:
    """The value in a map of variables."""
    if isinstance(value, str):
        return _content(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return digits(value)
    if isinstance(value, Supplied):
        return value
    if is_mapping(value) and set(value) == {"key"} and isinstance(value["key"], str):
        return Supplied(key=_map_name(value["key"]))
    if isinstance(value, bool):
        raise wrong(f"is {told(value)}, where a text is wanted", f'quote it: "{told(value)}"')
    raise wrong(f"is {told(value)}, where a text is wanted", "to supply it at submission, use a list with `- NAME`")


def _content(value: str, name: str | None = None) -> str:
    if flaw := unprintable(value):
        raise wrong(f"has {flaw} in the value" + (f" of {name}" if name else ""))
    return value


def _map_name(value: object) -> str:
    name = str(value)
    if not is_name(name):
        hint = "letters, digits and _, such as TOKEN; it may not have = or blanks"
        raise wrong(f"is not the name of a variable: {told(value)}", hint)
    return name


def _form(value: object) -> str | None:
    if isinstance(value, list | tuple):
        return "<list>"
    return "<map>" if isinstance(value, dict) else None


_Written = Annotated[
    Annotated[list[Annotated[tuple[str, str | Supplied], PlainValidator(env_item)]], Tag("<list>")]
    | Annotated[
        dict[Annotated[str, PlainValidator(_map_name)], Annotated[str | Supplied, PlainValidator(env_value)]],
        Tag("<map>"),
    ],
    by_form(
        _form, "is neither a list of NAME=value nor a map", "write `- NAME=value` in each line, or NAME: value"
    ),
]


def _as_map(value: list[tuple[str, str | Supplied]] | dict[str, str | Supplied]) -> dict[str, str | Supplied]:
    if isinstance(value, dict):
        return value
    variables: dict[str, str | Supplied] = {}
    for name, content in value:
        if name in variables:
            raise wrong(f"has {name} twice", "leave one of them out")
        variables[name] = content
    return variables


def _dumped(value: dict[str, str | Supplied]) -> dict[str, str | dict[str, str]]:
    return {name: item if isinstance(item, str) else {"key": item.key} for name, item in value.items()}


class _EnvForms:
    """Both forms to one map, with an error for each wrong item."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(
            _as_map,
            handler.generate_schema(_Written),
            serialization=core_schema.plain_serializer_function_ser_schema(_dumped),
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return ENV_SCHEMA


_SUPPLIED: dict[str, Any] = {
    "type": "object",
    "properties": {"key": {"type": "string"}},
    "required": ["key"],
    "additionalProperties": False,
}
ENV_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "array", "items": {"type": "string", "pattern": "^[a-zA-Z_][a-zA-Z0-9_]*(=|$)"}},
        {
            "type": "object",
            "propertyNames": {"pattern": r"^[^=\s]+$"},
            "additionalProperties": {"anyOf": [{"type": ["string", "number"]}, _SUPPLIED]},
        },
    ]
}

Env = Annotated[dict[str, str | Supplied], _EnvForms(), WithJsonSchema(ENV_SCHEMA)]
