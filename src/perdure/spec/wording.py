"""What pydantic found wrong, in words that a user can act on."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, cast

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from perdure.model.errors import FieldError
from perdure.spec.document import Lines, Path
from perdure.spec.grammar.base import told


class Wording:
    """Of the mistakes in one mapping.

    Args:
        known: by the id of a mapping in it, the model it was held to: ``Written`` leaves it behind.
    """

    def __init__(
        self,
        model: type[BaseModel],
        mapping: Mapping[str, object],
        known: Mapping[int, type[BaseModel]],
        lines: Lines | None,
    ):
        self._model = model
        self._mapping = mapping
        self._known = known
        self._lines = lines
        self.meant: list[Path] = []
        """Fields that were probably meant by keys that are not known."""

    def error(self, detail: ErrorDetails) -> FieldError:
        steps = steps_of(detail)
        unknown = detail["type"] == "extra_forbidden"
        message, hint = self._unknown_key(steps) if unknown else _in_words(detail)
        place = self._lines.at(steps, key=unknown) if self._lines else None
        return FieldError(
            path=dotted(steps),
            message=message,
            hint=hint,
            line=place.line if place else None,
            column=place.column if place else None,
        )

    def _unknown_key(self, steps: Path) -> tuple[str, str | None]:
        parent: object = self._mapping
        for step in steps[:-1]:
            parent = _inside(parent, step)
        owner = self._model if len(steps) == 1 else self._known.get(id(parent))
        names = sorted(owner.model_fields) if owner else []
        if meant := closest(str(steps[-1]), names):
            self.meant.append((*steps[:-1], meant))
            return "is not a key known here", f"did you mean {meant}?"
        return "is not a key known here", f"known here: {', '.join(names)}" if 0 < len(names) <= 12 else None


def steps_of(detail: ErrorDetails) -> Path:
    """Where it is in what the user wrote: without the marks of pydantic's and our own unions."""
    return tuple(
        step for step in detail["loc"] if not (isinstance(step, str) and (step.startswith("<") or step == "[key]"))
    )


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
    close = closest(word, known)
    return f"did you mean {close}?" if close else None


def closest(word: str, known: list[str]) -> str | None:
    word = word[:60].lower()
    for spelling in (word.replace("-", "_"), word.replace("_", "-"), word):
        if close := get_close_matches(spelling, known, n=1, cutoff=0.6):
            return close[0]
    return None


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
