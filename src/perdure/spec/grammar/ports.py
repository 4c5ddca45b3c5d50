"""Ports: ``8000``, ``"8000"``, ``80:8000`` (local:container), ``"*:8000"`` (any free local one)."""

from __future__ import annotations

import re
from typing import Annotated, cast

from pydantic import BeforeValidator, Field, WithJsonSchema

from perdure.spec.grammar.base import Written, told, whole, wrong

_PORT = re.compile(r"(?:(?P<local>[0-9]{1,5}|\*) *: *)?(?P<container>[0-9]{1,5})")
_HINT = "write 8000, 80:8000 or *:8000"


def port(value: object) -> object:
    """A port mapping from any of its forms."""
    if isinstance(value, dict | PortMapping):
        return cast(object, value)
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise wrong(f"is not a port: {told(value)}", _HINT)
    match = _PORT.fullmatch(str(value))
    if match is None:
        raise wrong(f"is not a port: {told(value)}", _HINT)
    if any(number.isdigit() and not 1 <= int(number) <= 65535 for number in match.groups(default="")):
        raise wrong(f"is not a port: {told(value)}", "a port is 1 to 65535")
    container = int(match["container"])
    match match["local"]:
        case None:
            return {"container_port": container, "local_port": container}
        case "*":
            return {"container_port": container}
        case local:
            return {"container_port": container, "local_port": int(local)}


class PortMapping(Written):
    """A port of the job, and where it appears on the user's machine."""

    container_port: Annotated[int, Field(ge=1, le=65535), BeforeValidator(whole)]
    local_port: Annotated[int, Field(ge=1, le=65535), BeforeValidator(whole)] | None = None
    """Unset: any free one."""


Port = Annotated[
    PortMapping,
    BeforeValidator(port),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": 65535},
                {"type": "string", "pattern": r"^(([0-9]+|\*) *: *)?[0-9]+$"},
                {
                    "type": "object",
                    "properties": {"container_port": {"type": "integer"}, "local_port": {"type": "integer"}},
                    "required": ["container_port"],
                    "additionalProperties": False,
                },
            ]
        }
    ),
]
