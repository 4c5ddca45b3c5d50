"""What anybody may have started a workflow with, made into what the workflow takes, or refused.

Workflows that people start take untyped JSON: a typed parameter would leave a malformed input retrying for ever.
"""

from __future__ import annotations

from typing import TypeVar

from pydantic import ValidationError

from perdure.model.base import Message
from perdure.model.errors import FieldError, InvalidConfiguration

Request = TypeVar("Request", bound=Message)


def understood(model: type[Request], given: object) -> Request:
    """
    Raises:
        InvalidConfiguration: with everything in it that is not what ``model`` takes.
    """
    if not isinstance(given, dict) or "configuration" not in given:
        hint = 'start it with {"configuration": {...}}'
        raise wrong_request("configuration", "is missing from the workflow's input", hint)
    try:
        return model.model_validate(given)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        raise InvalidConfiguration(
            [FieldError(path=".".join(str(part) for part in one["loc"]), message=one["msg"]) for one in found]
        ) from None


def wrong_request(path: str, message: str, hint: str) -> InvalidConfiguration:
    return InvalidConfiguration([FieldError(path=path, message=message, hint=hint)])
