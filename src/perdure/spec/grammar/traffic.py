"""How requests reach a service: paths, headers, windows of time, and whether they are encrypted."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from perdure.spec.grammar.base import Text, switch, told, wrong
from perdure.spec.grammar.durations import seconds
from perdure.spec.grammar.forms import SHORT_SWITCH_WORDS, scalar

_PREFIX = re.compile(r"/[^\s\\{}]*")
_HEADER = re.compile(r"[a-zA-Z0-9-_]{1,500}")
_HTTPS = scalar(
    "true, false or auto", "boolean", "integer", "string", pattern=f"{SHORT_SWITCH_WORDS}|auto", examples=["auto"]
)
_WINDOW = scalar("duration", "integer", "string", examples=["30s", "60s", "300s"])


def probe_path(value: str) -> str:
    if not value.startswith("/") or len(value) > 2048 or not value.isprintable():
        raise wrong(f"is not a path on the replica: {told(value)}", "begin it with /")
    return value


def prefix(value: str) -> str:
    if not _PREFIX.fullmatch(value) or len(value) > 4094:
        raise wrong(f"is not a prefix of paths: {told(value)}", "such as /api/")
    return value


def header_name(value: str) -> str:
    if not _HEADER.fullmatch(value):
        raise wrong(f"is not the name of a header: {told(value)}", "letters, digits, - and _, such as X-User")
    return value


def window(value: object) -> object:
    parsed = seconds(value)
    if parsed not in (30, 60, 300):
        raise wrong(f"is {told(value)}, where one of 30s, 60s, 300s is wanted")
    return parsed


def https(value: object) -> bool | Literal["auto"]:
    try:
        return "auto" if value == "auto" else switch(value)
    except ValueError:
        raise wrong(f"is {told(value)}, where true, false or auto is wanted", "leave it out for true") from None


ProbePath = Annotated[Text, AfterValidator(probe_path)]
Prefix = Annotated[Text, AfterValidator(prefix)]
HeaderName = Annotated[Text, AfterValidator(header_name)]
Window = Annotated[Literal[30, 60, 300], BeforeValidator(window), WithJsonSchema(_WINDOW)]
Https = Annotated[Literal[True, False, "auto"], BeforeValidator(https), WithJsonSchema(_HTTPS)]
