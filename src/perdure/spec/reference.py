"""The reference page of the language, made from the models: ``python -m perdure.spec.reference``.

Everything on it is said once, where it belongs: what a field is for in its docstring and what a value looks like in
its grammar, both by way of the JSON Schema; what this version cannot do yet, ``refusals`` is asked.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import BaseModel

from perdure.spec.grammar.base import is_list, is_mapping
from perdure.spec.grammar.forms import Schema
from perdure.spec.models.development import DevEnvironment
from perdure.spec.models.fleet import FleetConfiguration
from perdure.spec.models.profile import PlacementFields, Profile, ProfileFields, ProfilesFile
from perdure.spec.models.run import RunFields, Task
from perdure.spec.models.service import Service
from perdure.spec.models.standing import CloudVolume, Gateway, KubernetesVolume, VolumeFields
from perdure.spec.schema import definitions, title_of
from perdure.spec.waiting import KINDS, Asked, waits

_INTRODUCTION = """\
# Reference of the configuration language

Every field of every configuration. [Configuration](configuration.md) explains the language, `perdure validate FILE`
checks a file against all of this, and [an editor](editors.md) can while you write.

- *ours*: dstack does not have this field.
- *not yet*: it is read and checked, and a run that asks for it is refused when it is submitted.
- A default of — means none: nothing of the kind holds until you write it.
- A duration is a number and a unit, such as `90s`, `15m`, `2h` or `1d`; a number alone is seconds.
- A number alone is exact where a range may stand: `memory: 16GB` is no more and no less, `16GB..` is at least that.
- An example is right where its row is: with what its kind must have, and with what the words beside it ask for.
- `null` means the same as leaving a field out, unless its row says otherwise.

This page is made from the models that read your files: `python -m perdure.spec.reference > docs/reference.md`.
"""

_RUN = "And all fields of [every run](#every-run)."
_PROFILE = "And all fields of [runs and profiles](#runs-and-profiles)."
_PLACEMENT = "And all fields of [runs, profiles and fleets](#runs-profiles-and-fleets)."
_WAITS = "This version reads and checks it, and can do no more with it yet."
_SECTIONS: tuple[tuple[str, type[BaseModel], str], ...] = (
    ("task", Task, _RUN),
    ("service", Service, _RUN),
    ("dev-environment", DevEnvironment, _RUN),
    ("every run", RunFields, _PROFILE),
    ("runs and profiles", ProfileFields, _PLACEMENT),
    ("runs, profiles and fleets", PlacementFields, ""),
    ("profiles", ProfilesFile, "The file `.perdure/profiles.yml`."),
    ("profile", Profile, _PROFILE),
    ("fleet", FleetConfiguration, _PLACEMENT),
    ("volume", VolumeFields, "And the fields of its backend, here below."),
    ("volume in a cloud", CloudVolume, ""),
    ("volume in Kubernetes", KubernetesVolume, ""),
    ("gateway", Gateway, ""),
)
"""Each with the fields that its class itself has; what it inherits has a section of its own."""

_TASKS = ("task", "every run", "runs and profiles", "runs, profiles and fleets")
"""The sections whose fields a task has."""

_SHOWN_BESIDE = r"(^|[;,]? )`[^`]+` if unset|,? ?[sS]uch as `[^`]+`((, | or | and )`[^`]+`)*"
"""What a description says that columns of their own show."""

_PLAIN = ("text", "number", "whole number")
_PLAIN_TEXT = r"[\w./~<@+][\w ./~<>@+*-]*|\*"
_MANY = 8
"""A closed list longer than this stands among the values, not in each row."""


def page() -> str:
    """The whole page, in Markdown."""
    return _Page().text()


class _Page:
    def __init__(self) -> None:
        self._schemas = definitions(*(model for _, model, _ in _SECTIONS))
        self._titles = {model.__name__: title for title, model, _ in _SECTIONS}

    def text(self) -> str:
        parts = [_INTRODUCTION, *(self._own(title, model, more) for title, model, more in _SECTIONS)]
        parts.append("## Parts\n\nMappings that stand inside of the above.\n")
        for name, schema in self._schemas.items():
            if name not in self._titles and "properties" in schema:
                parts.append(self._part(name, schema))
        return "\n".join([*parts, self._values()])

    def _own(self, title: str, model: type[BaseModel], more: str) -> str:
        own = [name for name in model.model_fields if name in model.__annotations__]
        kind = "task" if title in _TASKS else title
        if kind in KINDS and waits(kind, {}, "type"):
            return self._section("##", title, self._schemas[model.__name__], own, f"{more} {_WAITS}".strip(), None)
        asked = Asked(kind) if kind in KINDS else None
        return self._section("##", title, self._schemas[model.__name__], own, more, asked)

    def _part(self, name: str, schema: Schema) -> str:
        return self._section(
            "###", title_of(name), schema, list(schema["properties"]), "", self._asked_in_task(name, schema)
        )

    def _asked_in_task(self, part: str, schema: Schema) -> Asked | None:
        """How a task is asked about a part of its own."""
        for field, form in self._schemas[Task.__name__]["properties"].items():
            if any(one.get("$ref", "").endswith(f"/{part}") for one in _scalars(form)):
                least = {name: self.example(schema["properties"][name]) for name in schema.get("required", ())}
                return Asked("task", field, least, form.get("type") in ("array", ["array", "null"]))
        return None

    def _section(
        self, mark: str, title: str, schema: Schema, names: Sequence[str], more: str, asked: Asked | None
    ) -> str:
        about = " ".join(words for words in (_cell(_words(schema)), more) if words)
        lines = [
            f"{mark} {title}\n",
            f"{about}\n",
            "| Field | Value | Default | | Example |",
            "|---|---|---|---|---|",
        ]
        for name in names:
            lines.append(self._row(name, schema["properties"][name], name in schema.get("required", ()), asked))
        return "\n".join(lines) + "\n"

    def _row(self, name: str, field: Schema, required: bool, asked: Asked | None) -> str:
        example = self.example(field)
        marks = " *ours*" if field.get("x-ours") else ""
        if asked is not None and asked.whether_waits(name, example):
            marks += " *not yet*"
        default = "required" if required else _code(field["default"]) if "default" in field else "—"
        words = re.sub(_SHOWN_BESIDE, "", _cell(_words(field))).strip(" .,;")
        shown = "" if example in (None, [None]) else _cell(f"`{name}: {flow(example)}`")
        return f"| `{name}`{marks} | {self._type(field)} | {default} | {words} | {shown} |"

    def _type(self, field: Schema) -> str:
        if "$ref" in field:
            title = self._title(field["$ref"].rpartition("/")[2])
            return f"[{title}](#{title.lower().replace(',', '').replace(' ', '-')})"
        if "enum" in field or "const" in field:
            values = [value for value in field.get("enum", [field.get("const")]) if isinstance(value, str)]
            return field["title"] if len(values) > _MANY else " or ".join(map(_code, values))
        if alternatives := field.get("anyOf") or field.get("oneOf"):
            types = [self._type(one) for one in alternatives if one.get("type") not in ("null", ["null"])]
            return " or ".join(dict.fromkeys(types))
        if "items" in field:
            return f"list: {self._type(field['items'])}"
        if "properties" in field:
            return "{" + ", ".join(field["properties"]) + "}"
        if "patternProperties" in field or "additionalProperties" in field:
            return "map of texts"
        return field.get("title", "text") + (_bounds(field) if field.get("title") in _PLAIN else "")

    def _title(self, name: str) -> str:
        return self._titles.get(name) or title_of(name)

    def example(self, field: Schema) -> Any:
        """What a user might write."""
        if "examples" in field:
            return field["examples"][0]
        if "enum" in field or "const" in field:
            values = field.get("enum", [field.get("const")])
            return next((value for value in values if value != field.get("default")), values[0])
        if "$ref" in field:
            schema = self._schemas[field["$ref"].rpartition("/")[2]]
            names = schema.get("required") or list(schema["properties"])[:1]
            return {name: self.example(schema["properties"][name]) for name in names}
        if alternatives := field.get("anyOf") or field.get("oneOf"):
            return self.example(alternatives[0])
        if "items" in field:
            return [self.example(field["items"])]
        if "boolean" in field.get("type", ()):
            return not field.get("default", False)
        if field.get("title") in ("number", "whole number"):
            return max(1, field.get("minimum", 1))
        return field.get("default")

    def _values(self) -> str:
        """How each kind of value is written."""
        kinds: dict[str, Schema] = {}
        for schema in self._schemas.values():
            for field in schema.get("properties", {}).values():
                for form in _scalars(field):
                    if form.get("title", "text") not in _PLAIN and ("type" in form or "enum" in form):
                        kinds.setdefault(form["title"], form)
        lines = ["## Values\n", "| Value | Such as | |", "|---|---|---|"]
        for title, form in sorted(kinds.items(), key=lambda kind: kind[0].lower()):
            values = form.get("examples") or form.get("enum") or [self.example(form)]
            examples = ", ".join(dict.fromkeys(map(_code, values)))
            lines.append(f"| {title} | {examples} | {_cell(form.get('patternErrorMessage', ''))} |")
        return "\n".join(lines) + "\n"


def flow(value: object) -> str:
    """On one line of YAML."""
    if is_mapping(value):
        return "{" + ", ".join(f"{key}: {flow(item)}" for key, item in value.items()) + "}"
    if is_list(value):
        return "[" + ", ".join(map(flow, value)) + "]"
    if isinstance(value, str) and re.fullmatch(_PLAIN_TEXT, value):
        return value
    return json.dumps(value)


def _scalars(field: Schema) -> Iterator[Schema]:
    """A field's schema, and those that it is made of."""
    yield field
    for one in [*field.get("anyOf", ()), *field.get("oneOf", ()), field.get("items")]:
        if one:
            yield from _scalars(one)


def _words(schema: Schema) -> str:
    return schema.get("markdownDescription") or schema.get("description", "")


def _bounds(field: Schema) -> str:
    low, high = field.get("minimum"), field.get("maximum")
    if "exclusiveMinimum" in field:
        return f", more than {field['exclusiveMinimum']}"
    if low is not None and high is not None and high < 10**9:
        return f", {low:g} to {high:g}"
    return f", at least {low:.2g}" if low else ""


def _code(value: object) -> str:
    return _cell(f"`{flow(value)}`")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
