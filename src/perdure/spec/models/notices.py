"""What one run has to do with the world around it: who is told about it, and which runs it waits for."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator

from perdure.spec.grammar.base import Text, Written, not_empty, told, wrong
from perdure.spec.grammar.forms import Short, scalar
from perdure.spec.grammar.names import ResourceName

RunStatusName = Literal[
    "pending", "submitted", "provisioning", "running", "terminating", "terminated", "failed", "done"
]
_URL = re.compile(r"https?://[^\s/?#]+[^\s]*")


def _web_address(value: str) -> str:
    if _URL.fullmatch(value) and len(value) <= 2048:
        return value
    raise wrong(f"is not an address to call: {told(value)}", "begin it with https://")


class Notice(Written):
    """A web hook: it is called when the run reaches one of these statuses."""

    url: Annotated[Text, AfterValidator(_web_address)]
    """Called with a POST, such as ``https://example.com/hook``."""

    on: Annotated[tuple[RunStatusName, ...], AfterValidator(not_empty)] | None = None
    """Which statuses. Unset: when it has ended."""


class DependencySpec(Written):
    """A run that must have ended before this one starts."""

    run: ResourceName
    """Its name, in the same project."""

    on: Literal["done", "ended"] = "done"
    """``done``: it succeeded; if it fails, so does this one. ``ended``: however it ended."""


def _dependency(value: object) -> object:
    return {"run": value} if isinstance(value, str) else value


Dependency = Annotated[
    DependencySpec,
    BeforeValidator(_dependency),
    Short(scalar("name of a run", "string", examples=["prepare"])),
]
