"""Names, references, tags, users, and the few closed lists."""

from __future__ import annotations

import re
from typing import Annotated, cast

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, WithJsonSchema

from perdure.model.ids import RESOURCE_NAME
from perdure.spec.grammar.base import TEXT_SCHEMA, Text, Written, is_mapping, text, told, whole, wrong
from perdure.spec.grammar.forms import ANY, Short, scalar

BACKENDS = (
    "amddevcloud",
    "aws",
    "azure",
    "cloudrift",
    "crusoe",
    "cudo",
    "datacrunch",
    "digitalocean",
    "gcp",
    "hotaisle",
    "jarvislabs",
    "kubernetes",
    "lambda",
    "local",
    "nebius",
    "oci",
    "remote",
    "runpod",
    "slurm",
    "tensordock",
    "vastai",
    "verda",
    "vultr",
)
_GROUP_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_TAG_KEY = re.compile(r"[_\-a-zA-Z0-9]{1,60}")
_TAG_VALUE = re.compile(r"[a-zA-Z0-9 .:/=_\-+@]{0,256}")
PYTHONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")


_NAME_HINT = "1 to 41 lower-case letters, digits and hyphens, beginning with a letter: my-run-1"
_NAME = scalar("name", "string", pattern=RESOURCE_NAME.pattern.strip("^$"), hint=_NAME_HINT, examples=["my-run-1"])
_GROUP = scalar("name", "string", "number", pattern=_GROUP_NAME.pattern, examples=["workers"])


def resource_name(value: str) -> str:
    if RESOURCE_NAME.match(value) and not value.endswith("\n"):
        return value
    raise wrong(
        f"is not a name: {told(value)}",
        _NAME_HINT,
    )


def group_name(value: str) -> str:
    if _GROUP_NAME.fullmatch(value):
        return value
    raise wrong(f"is not the name of a group: {told(value)}", "1 to 40 lower-case letters, digits and hyphens")


ResourceName = Annotated[Text, AfterValidator(resource_name), WithJsonSchema(_NAME)]
GroupName = Annotated[Text, AfterValidator(group_name), WithJsonSchema(_GROUP)]


class Reference(Written):
    """Something by its name, in this project or another."""

    name: Annotated[Text, AfterValidator(lambda v: _part(v))]
    """Such as ``gpus``."""

    project: Annotated[Text, AfterValidator(lambda v: _part(v))] | None = None
    """Such as ``main``; unset: the run's own."""

    def words(self) -> str:
        return f"{self.project}/{self.name}" if self.project else self.name


def _part(value: str) -> str:
    if not value or "/" in value:
        raise wrong(f"is not a name: {told(value)}", "a project and a name are written project/name")
    return value


def reference(value: object) -> object:
    """``name``, ``project/name`` or a mapping."""
    if not isinstance(value, str):
        return value
    parts = value.split("/")
    if len(parts) > 2 or not all(parts):
        raise wrong(f"is not a name or project/name: {told(value)}", "such as gpus, or main/gpus")
    return {"name": parts[-1], "project": parts[0]} if len(parts) == 2 else {"name": value}


Ref = Annotated[
    Reference,
    BeforeValidator(reference),
    Short(scalar("name or project/name", "string", pattern="[^/]+(/[^/]+)?", examples=["gpus", "main/gpus"])),
]


def backend(value: object) -> str:
    """A backend's name; ``ssh`` is a second name for ``remote``."""
    name = "remote" if value == "ssh" else value
    if isinstance(name, str) and name in BACKENDS:
        return name
    begun = value[:3].lower() if isinstance(value, str) else ""  # no two of them begin with the same three letters
    meant = next((known for known in BACKENDS if begun and known.startswith(begun)), None)
    hint = f"did you mean {meant}?" if meant else f"one of {', '.join(BACKENDS)}"
    raise wrong(f"is not a backend we know: {told(value)}", hint)


BackendName = Annotated[
    str, PlainValidator(backend), WithJsonSchema({"title": "backend", "enum": [*BACKENDS, "ssh"]})
]


def _tag_value(value: object) -> str:
    word = text(value)
    if _TAG_VALUE.fullmatch(word):
        return word
    raise wrong(f"is not the value of a tag: {told(word)}", "up to 256 letters, digits, blanks and .:/=_-+@")


def _tag_key(value: object) -> str:
    if isinstance(value, str) and _TAG_KEY.fullmatch(value):
        return value
    raise wrong(f"is not the key of a tag: {told(value)}", "1 to 60 letters, digits, _ and -")


Tags = dict[
    Annotated[str, PlainValidator(_tag_key), WithJsonSchema(scalar("key", "string", pattern=_TAG_KEY.pattern))],
    Annotated[
        str, PlainValidator(_tag_value), WithJsonSchema(TEXT_SCHEMA | {"pattern": f"^{_TAG_VALUE.pattern}$"})
    ],
]


def unix_user(value: object) -> str:
    """``name_or_id[:group_name_or_id]``"""
    word = text(value)
    parts = word.split(":")
    if len(parts) > 2 or not all(parts) or any(re.fullmatch(r"-[0-9]+", part) for part in parts):
        raise wrong(f"is not a user: {told(word)}", "write ubuntu, 1000 or 1000:1000")
    return word


def shell(value: object) -> str:
    word = text(value)
    if word in ("sh", "bash"):
        return word
    if word.startswith("/") and len(word) > 1:
        return word
    raise wrong(f"is not a shell: {told(word)}", "write sh, bash or an absolute path such as /usr/bin/zsh")


def python(value: object) -> str:
    """A Python version. ``3.1``, as 3.10 arrives from JSON, is 3.10."""
    word = "3.10" if value == 3.1 and isinstance(value, float) else value
    if isinstance(word, float):
        word = str(word)
    if isinstance(word, str) and word in PYTHONS:
        return word
    raise wrong(f"is not a Python version that can be had: {told(value)}", f"one of {', '.join(PYTHONS)}")


def working_dir(value: object) -> str:
    word = text(value)
    if word.startswith(("/", "~")):
        return word
    raise wrong(f"is not an absolute path: {told(word)}", "begin it with / or ~")


_USER = scalar(
    "user and group",
    "string",
    "number",
    pattern="[^:]+(:[^:]+)?",
    hint="write ubuntu, 1000 or 1000:1000",
    examples=["ubuntu", "1000:1000"],
)
_SHELL = scalar(
    "shell",
    "string",
    pattern=f"sh|bash|/{ANY}+",
    hint="write sh, bash or an absolute path",
    examples=["bash", "sh"],
)
_DIRECTORY = scalar(
    "absolute path", "string", pattern=f"[/~]{ANY}*", hint="begin it with / or ~", examples=["/app"]
)

User = Annotated[str, PlainValidator(unix_user), WithJsonSchema(_USER)]
Shell = Annotated[str, PlainValidator(shell), WithJsonSchema(_SHELL)]
Python = Annotated[
    str,
    PlainValidator(python),
    WithJsonSchema({"title": "Python version", "enum": [*PYTHONS, *map(float, PYTHONS)]}),
]
WorkingDir = Annotated[str, PlainValidator(working_dir), WithJsonSchema(_DIRECTORY)]


class InstanceByName(Written):
    """An existing instance, by its name."""

    name: Text
    """Such as ``gpus-0``."""


class InstanceByHost(Written):
    """An existing instance, by its address."""

    hostname: Text
    """Such as ``10.0.0.7``."""


class InstanceOfFleet(Written):
    """An existing instance, by its place in its fleet."""

    fleet: Ref
    """Its fleet."""

    instance: Annotated[int, Field(ge=0), BeforeValidator(whole)]
    """Its number there, from 0."""


def instance_form(value: object) -> str | None:
    """Which of the three ways an existing instance is named in."""
    if isinstance(value, InstanceByHost) or (isinstance(value, dict) and "hostname" in value):
        return "<hostname>"
    if isinstance(value, InstanceOfFleet) or (
        isinstance(value, dict) and ("fleet" in value or "instance" in value)
    ):
        return "<fleet>"
    return "<name>" if isinstance(value, dict | InstanceByName) else None


def named(value: object) -> object:
    """An instance that is given by its name alone, as a mapping; in one way only, if it is one already."""
    if is_mapping(value) and len([way for way in ("name", "hostname", "fleet") if way in value]) > 1:
        raise wrong("names an instance in more than one way", "give one of name, hostname, or fleet and instance")
    return cast(object, {"name": value} if isinstance(value, str) else value)
