"""Anything JSON can hold to a model, or to every mistake in it at once, each in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from perdure.model.errors import FieldError, InvalidConfiguration
from perdure.spec.document import Document, Lines
from perdure.spec.grammar.base import told
from perdure.spec.rules.base import Pattern, Problem, Rule
from perdure.spec.salvage import Salvage
from perdure.spec.wording import Wording, steps_of

MAX_ERRORS = 50
"""More are only counted: errors travel through Temporal."""

Model = TypeVar("Model", bound=BaseModel)


def check(
    model: type[Model],
    mapping: Mapping[str, object],
    lines: Lines | None = None,
    rules: Sequence[Rule[Any]] = (),
    others: Sequence[type[BaseModel]] = (),
) -> Model:
    """The mapping as a model that keeps these rules.

    Args:
        others: models of other kinds of configurations, whose fields may have been meant by unknown keys.

    Raises:
        InvalidConfiguration: with every error, in the order of the document where that is known.
    """
    known: dict[int, type[BaseModel]] = {}
    try:
        found = model.model_validate(dict(mapping), context=known)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=True)
    else:
        problems = _asked(rules, found)
        if not problems:
            return found
        raise _invalid(mapping, _told(problems, lines), len(problems))
    wording = Wording(model, mapping, known, lines, others)
    first = _first(details, lines)
    errors = wording.errors(first)
    twice = len(first) - len(errors)
    salvage = Salvage(model, mapping, details, wording.meant)
    problems = _asked(rules, salvage.found, salvage.wrong)
    raise _invalid(mapping, errors + _told(problems, lines), len(details) - twice + len(problems))


def _asked(rules: Sequence[Rule[Any]], found: BaseModel | None, wrong: Set[Pattern] = frozenset()) -> list[Problem]:
    """What the rules find in what could be read: nothing is said that only follows from another mistake."""
    if found is None:
        return []
    return [problem for rule in rules if rule.may_be_asked(wrong) for problem in rule.find(found)]


def _first(details: list[ErrorDetails], lines: Lines | None) -> list[ErrorDetails]:
    """As many as anybody reads, in the order of the document."""
    if lines is not None:
        details = sorted(details, key=lambda detail: lines.at(steps_of(detail), key=True))
    return details[:MAX_ERRORS]


def _told(problems: list[Problem], lines: Lines | None) -> list[FieldError]:
    return [field_error(*problem, lines=lines) for problem in problems[:MAX_ERRORS]]


def _invalid(mapping: Mapping[str, object], errors: list[FieldError], count: int) -> InvalidConfiguration:
    errors = in_order(errors)[:MAX_ERRORS]
    if count > len(errors):
        errors.append(FieldError(path="", message=f"has {count - len(errors)} more mistakes"))
    return InvalidConfiguration(errors, source=source_of(mapping))


def in_order(errors: list[FieldError]) -> list[FieldError]:
    """Of the document; at the end what has no place in it."""
    return sorted(errors, key=lambda e: (e.line is None, e.line or 0, e.column or 0))


def source_of(mapping: object) -> str | None:
    return mapping.source if isinstance(mapping, Document) else None


def lines_of(mapping: object) -> Lines | None:
    return mapping.lines if isinstance(mapping, Document) else None


def entries_of(mapping: object) -> Mapping[str, object]:
    """Anything as a mapping of texts.

    Raises:
        InvalidConfiguration: it is none.
    """
    if not isinstance(mapping, Mapping):
        error = field_error("", f"is {told(mapping)}, where a mapping is wanted", "begin with type: task")
        raise InvalidConfiguration([error])
    entries = cast(Mapping[object, object], mapping)
    if not all(isinstance(key, str) for key in entries):
        raise InvalidConfiguration([field_error("", "has a key that is not a text")])
    return cast(Mapping[str, object], entries)


def field_error(path: str, message: str, hint: str | None = None, *, lines: Lines | None = None) -> FieldError:
    """An error found after parsing, placed where the value stands."""
    error = FieldError(path=path, message=message, hint=hint)
    return lines.locate(error) if lines else error
