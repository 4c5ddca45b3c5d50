"""The one tree of expected errors.

::

    PerdureError
    ├── UserError            the user can mend it            exit code 1
    │   ├── InvalidConfiguration   every field error, with path, line and hint
    │   ├── NotFound               no such run, fleet, log …
    │   ├── Conflict               the name is in use; the state forbids it
    │   ├── CannotOpen             a secret, or a value that came sealed, cannot be had
    │   └── CodeTooLarge           what would be uploaded is over the limit
    ├── CapacityError        nobody has what is asked for
    ├── ProviderError        a cloud or a host said no
    │   ├── ProviderThrottled      try again later
    │   └── OutcomeUnknown         it may or may not have happened: look, then act
    ├── AgentError           a shim or runner said no
    │   ├── AgentUnreachable       no answer
    │   │   └── InstanceGone           nor will there be: the provider says that its instance is gone
    │   └── AgentRefused           a clear no, with its reason
    └── ControlPlaneError    Temporal, Postgres or the worker cannot be reached

Each has a stable ``code``, says whose fault it is, and carries what the user should do (``hint``).
Crossing Temporal, an error becomes an ``ApplicationError`` of type ``code``.
"""

from __future__ import annotations

from perdure.model.base import Message
from perdure.model.origins import Layer
from perdure.model.statuses import Fault


class FieldError(Message):
    """One thing wrong in a configuration."""

    path: str
    """Dotted, with indices: ``env[2]``, ``resources.gpu``; empty for the whole document."""

    message: str
    hint: str | None = None
    line: int | None = None
    """1-based; None when the input was not a text."""

    column: int | None = None
    layer: Layer = "configuration"
    """Where it is written: ``path`` is in a flag or in the profile, if not in the configuration."""


class PerdureError(Exception):
    """An expected failure, told in one sentence."""

    code = "error"
    fault = Fault.OURS
    retryable = False

    def __init__(self, message: str, *, hint: str | None = None):
        super().__init__(message)
        self.message = message
        self.hint = hint


class UserError(PerdureError):
    code = "user-error"
    fault = Fault.USER


MOST_ERRORS = 50
"""Told of one configuration; more are only counted. They travel through Temporal, and nobody reads as many."""


def bounded(errors: list[FieldError]) -> list[FieldError]:
    """As many as are told, and how many more there are. What is bounded already stays as it is."""
    if len(errors) <= MOST_ERRORS + 1:
        return errors
    more = len(errors) - MOST_ERRORS
    return [*errors[:MOST_ERRORS], FieldError(path="", message=f"has {more} more mistakes")]


class InvalidConfiguration(UserError):
    """Every mistake of a configuration at once."""

    code = "invalid-configuration"

    def __init__(self, errors: list[FieldError], *, source: str | None = None):
        errors = bounded(errors)
        self.errors = errors
        self.source = source
        super().__init__("; ".join(_in_words(error) for error in errors), hint=None)


class NotFound(UserError):
    code = "not-found"


class Conflict(UserError):
    code = "conflict"


class CannotOpen(UserError):
    code = "cannot-open"


class CodeTooLarge(UserError):
    code = "code-too-large"


class CapacityError(PerdureError):
    code = "no-capacity"
    fault = Fault.CAPACITY


class ProviderError(PerdureError):
    code = "provider-error"
    fault = Fault.PROVIDER


class ProviderThrottled(ProviderError):
    code = "provider-throttled"
    retryable = True


class OutcomeUnknown(ProviderError):
    code = "outcome-unknown"
    retryable = True


class AgentError(PerdureError):
    code = "agent-error"
    fault = Fault.AGENT


class AgentUnreachable(AgentError):
    code = "agent-unreachable"
    retryable = True


class InstanceGone(AgentUnreachable):
    """``spot``: its provider may take back such a one at any time, so that a job on it was interrupted."""

    code = "instance-gone"
    retryable = False
    spot = False


class AgentRefused(AgentError):
    """``status``: the HTTP status it answered with, such as 404 for a task it does not have."""

    code = "agent-refused"

    def __init__(self, message: str, *, hint: str | None = None, status: int | None = None):
        super().__init__(message, hint=hint)
        self.status = status


class ControlPlaneError(PerdureError):
    code = "control-plane"
    retryable = True


def _in_words(error: FieldError) -> str:
    where = error.path or "configuration"
    if error.layer != "configuration":
        where = f"{error.layer} {error.path}".rstrip()
    if error.line is not None:
        where += f" (line {error.line})"
    return f"{where}: {error.message}" + (f" ({error.hint})" if error.hint else "")
