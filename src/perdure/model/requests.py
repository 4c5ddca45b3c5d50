"""What anybody may have started a workflow with, made into what the workflow takes, or refused.

Workflows that people start take untyped JSON: a typed parameter would leave a malformed input retrying for ever
instead of failing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar, cast

from pydantic import ValidationError

from perdure.model.base import Message
from perdure.model.errors import FieldError, InvalidConfiguration

Request = TypeVar("Request", bound=Message)

DEEPEST = 120
"""Levels: those of a configuration, and of the request around it."""

_LARGEST = 2**63
START_IT = 'start it with {"configuration": {...}}'


@dataclass(frozen=True)
class Unreadable:
    """Stands for an input that is not JSON."""

    why: str


def storable(given: object) -> object:
    """An input, of which all can be stored and sent on.

    Raises:
        InvalidConfiguration: it is not JSON, is nested too deeply, or has something in it that no text or number of
            ours can hold.
    """
    if isinstance(given, Unreadable):
        raise wrong_request("", given.why, START_IT)
    _check(given)
    return given


def understood(model: type[Request], given: object) -> Request:
    """
    Raises:
        InvalidConfiguration: with everything in it that is not what ``model`` takes.
    """
    if not isinstance(given, dict) or "configuration" not in given:
        raise wrong_request("configuration", "is missing from the workflow's input", START_IT)
    try:
        return model.model_validate(given)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        raise InvalidConfiguration(
            [FieldError(path=".".join(str(part) for part in one["loc"]), message=one["msg"]) for one in found]
        ) from None


def wrong_request(path: str, message: str, hint: str | None = None) -> InvalidConfiguration:
    return InvalidConfiguration([FieldError(path=path, message=message, hint=hint)])


def _check(root: object) -> None:
    """Walk it, without recursion."""
    left: list[tuple[str, int, object]] = [("", 1, root)]
    while left:
        path, level, value = left.pop()
        if level > DEEPEST:
            raise wrong_request(path, f"is nested more than {DEEPEST} levels deep")
        if isinstance(value, dict):
            for key, item in cast(dict[str, object], value).items():
                _check_plain(path, key)
                left.append((f"{path}.{key}"[:200].lstrip("."), level + 1, item))
        elif isinstance(value, list):
            items = enumerate(cast(list[object], value))
            left += [(f"{path}[{index}]"[:200], level + 1, item) for index, item in items]
        else:
            _check_plain(path, value)


def _check_plain(path: str, value: object) -> None:
    match value:
        case str() if "\0" in value:
            raise wrong_request(path, "has a NUL character in it")
        case str() if not _is_text(value):
            raise wrong_request(path, "has half of a character (a lone surrogate) in it")
        case int() if abs(value) >= _LARGEST:
            raise wrong_request(path, "is a number beyond all bounds")
        case float() if not math.isfinite(value):
            raise wrong_request(path, f"is {value}, which is not a number")
        case _:
            pass


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
