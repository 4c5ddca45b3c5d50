"""Ports: ``8000``, ``"8000"``, ``80:8000`` (local:container), ``"*:8000"`` (any free local one)."""

from __future__ import annotations

import re
from typing import Annotated, cast

from pydantic import BeforeValidator, Field

from perdure.spec.grammar.base import Written, is_mapping, joined, told, whole, whole_text, wrong
from perdure.spec.grammar.forms import Short, scalar

_PAIR = re.compile(r"(?P<local>[0-9]{1,5}|\*) *: *(?P<container>[0-9]{1,5})")
_HINT = "write 8000, 80:8000 or *:8000"


PORT = scalar(
    "port",
    "integer",
    "string",
    pattern=r"(([0-9]+|\*) *: *)?[0-9]+|\+?[0-9][0-9_]*",
    hint=_HINT,
    examples=[8000, "80:8000", "*:8000"],
) | {"minimum": 1, "maximum": 65535}


def port(value: object) -> object:
    """A port mapping from any of its forms."""
    if isinstance(value, dict | PortMapping):
        return joined(cast(object, value), PortMapping.model_fields)
    single = whole_text(value) if isinstance(value, str) else value
    if isinstance(single, int) and not isinstance(single, bool):
        container = _bounded(single)
        return {"container_port": container, "local_port": container}
    match = _PAIR.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise wrong(f"is not a port: {told(value)}", _HINT)
    container = _bounded(int(match["container"]))
    if match["local"] == "*":
        return {"container_port": container}
    return {"container_port": container, "local_port": _bounded(int(match["local"]))}


def _bounded(value: int) -> int:
    if 1 <= value <= 65535:
        return value
    raise wrong(f"is not a port: {told(value)}", "a port is 1 to 65535")


class PortMapping(Written):
    """A port of the job, and where it appears on the user's machine."""

    container_port: Annotated[int, Field(ge=1, le=65535), BeforeValidator(whole)]
    """In the job, such as ``8000``."""

    local_port: Annotated[int, Field(ge=1, le=65535), BeforeValidator(whole)] | None = None
    """On your machine, such as ``8000``. Unset: any free one."""


Port = Annotated[PortMapping, BeforeValidator(port), Short(PORT)]


def service_port(value: object) -> object:
    """The service's port; its place on the user's machine does not matter, and is 80."""
    if isinstance(value, str) and value.strip().startswith("*"):
        raise wrong(f"is not the port of a service: {told(value)}", "write 8000")
    parsed = port(value)
    if is_mapping(parsed) and not is_mapping(value) and ":" not in str(value):
        return {**parsed, "local_port": 80}
    return parsed


ServicePort = Annotated[PortMapping, BeforeValidator(service_port), Short(PORT)]
