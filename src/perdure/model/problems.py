"""An expected error on its way over the wire, and back."""

from __future__ import annotations

from collections.abc import Iterator

from perdure.model.api import Problem
from perdure.model.errors import InvalidConfiguration, PerdureError


def problem_of(error: PerdureError) -> Problem:
    errors = tuple(error.errors) if isinstance(error, InvalidConfiguration) else ()
    return Problem(code=error.code, message=error.message, hint=error.hint, errors=errors)


def error_of(problem: Problem) -> PerdureError:
    """The error that a problem came from; a ``PerdureError`` for a code of a newer worker."""
    if problem.code == InvalidConfiguration.code:
        return InvalidConfiguration(list(problem.errors))
    kind = _KINDS.get(problem.code, PerdureError)
    return kind(problem.message, hint=problem.hint)


def _kinds(base: type[PerdureError]) -> Iterator[type[PerdureError]]:
    yield base
    for kind in base.__subclasses__():
        yield from _kinds(kind)


_KINDS = {kind.code: kind for kind in _kinds(PerdureError)}
