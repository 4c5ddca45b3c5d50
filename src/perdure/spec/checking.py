"""Anything JSON can hold to a model, or to every mistake in it at once, each in words."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from difflib import get_close_matches
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError, create_model
from pydantic_core import ErrorDetails

from perdure.model.errors import FieldError, InvalidConfiguration
from perdure.spec.document import Document, Lines, Path
from perdure.spec.grammar.base import told

MAX_ERRORS = 50
"""More are only counted: errors travel through Temporal."""

Model = TypeVar("Model", bound=BaseModel)


def check(model: type[Model], mapping: Mapping[str, object], lines: Lines | None = None) -> Model:
    """The mapping as a model.

    Raises:
        InvalidConfiguration: with every error, in the order of the document where that is known.
    """
    known: dict[int, type[BaseModel]] = {}
    try:
        return model.model_validate(dict(mapping), context=known)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=True)
    errors = [_field_error(detail, model, mapping, known, lines) for detail in _first(details, lines)]
    if len(details) > MAX_ERRORS:
        errors.append(FieldError(path="", message=f"has {len(details) - MAX_ERRORS} more mistakes"))
    raise InvalidConfiguration(errors, source=source_of(mapping))


def partial(model: type[Model]) -> type[Model]:
    """The same model with nothing required: what is missing is None, and its type does not say so."""
    return cast(type[Model], _partial(model))


@cache
def _partial(model: type[BaseModel]) -> type[BaseModel]:
    optional: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        if field.is_required():
            unset = copy(field)
            unset.default = None
            optional[name] = (field.annotation, unset)
    return create_model(model.__name__, __base__=model, **optional)


def _first(details: list[ErrorDetails], lines: Lines | None) -> list[ErrorDetails]:
    """As many as anybody reads, in the order of the document."""
    if lines is not None:
        details = sorted(details, key=lambda detail: lines.at(_steps(detail), key=True))
    return details[:MAX_ERRORS]


def in_order(errors: list[FieldError]) -> list[FieldError]:
    return sorted(errors, key=lambda e: (e.line or 0, e.column or 0))


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


def dotted(path: Path) -> str:
    words = ""
    for step in path:
        if isinstance(step, int):
            words += f"[{step}]"
        else:
            name = step[:60] if step[:60].isprintable() else ascii(step[:60])[1:-1]
            words += f".{name}" if words else name
    return words[:200]


def nearest(word: str, known: list[str]) -> str | None:
    """The hint that says which of the known words was probably meant."""
    close = get_close_matches(word[:60].lower().replace("-", "_"), known, n=1, cutoff=0.6) or get_close_matches(
        word[:60].lower(), known, n=1, cutoff=0.6
    )
    return f"did you mean {close[0]}?" if close else None


def _field_error(
    detail: ErrorDetails,
    model: type[BaseModel],
    mapping: Mapping[str, object],
    known: dict[int, type[BaseModel]],
    lines: Lines | None,
) -> FieldError:
    steps = _steps(detail)
    message, hint = _in_words(detail)
    if detail["type"] == "extra_forbidden":
        parent: object = mapping
        for step in steps[:-1]:
            parent = _inside(parent, step)
        owner = model if len(steps) == 1 else known.get(id(parent))
        names = sorted(owner.model_fields) if owner else []
        hint = nearest(str(steps[-1]), names) or (
            f"known here: {', '.join(names)}" if 0 < len(names) <= 12 else None
        )
    place = lines.at(steps, key=detail["type"] == "extra_forbidden") if lines else None
    return FieldError(
        path=dotted(steps),
        message=message,
        hint=hint,
        line=place.line if place else None,
        column=place.column if place else None,
    )


def _steps(detail: ErrorDetails) -> Path:
    """Where it is in what the user wrote: without the marks of pydantic's and our own unions."""
    return tuple(
        step for step in detail["loc"] if not (isinstance(step, str) and (step.startswith("<") or step == "[key]"))
    )


def _inside(value: object, step: str | int) -> object:
    try:
        return cast(Any, value)[step]
    except (KeyError, IndexError, TypeError):
        return None


def _in_words(detail: ErrorDetails) -> tuple[str, str | None]:
    context: dict[str, Any] = detail.get("ctx", {})
    given = told(detail["input"])
    match detail["type"]:
        case "perdure":
            return str(context.get("text", detail["msg"])), context.get("hint")
        case "missing":
            return "is missing", None
        case "extra_forbidden":
            return "is not a key known here", None
        case "literal_error":
            wanted = str(context["expected"]).replace("'", "").replace(" or ", ", ")
            hint = nearest(str(detail["input"]), wanted.split(", ")) if isinstance(detail["input"], str) else None
            return f"is {given}, where one of {wanted} is wanted", hint
        case "greater_than_equal":
            return f"is {given}: at least {context['ge']} is wanted", None
        case "less_than_equal":
            return f"is {given}: at most {context['le']} is allowed", None
        case "greater_than":
            return f"is {given}: more than {context['gt']} is wanted", None
        case "list_type" | "tuple_type":
            hint = "write it as a list: each item in its own line, after `- `"
            return f"is {given}, where a list is wanted", hint if detail["input"] is not None else None
        case "dict_type" | "model_type" | "model_attributes_type":
            return f"is {given}, where a mapping is wanted", None
        case "too_short":
            return "is empty: at least one item is wanted", None
        case "too_long":
            return f"has too many items: at most {context.get('max_length')} allowed", None
        case _:
            return detail["msg"][:1].lower() + detail["msg"][1:], None
