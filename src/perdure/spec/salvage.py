"""What of a configuration with mistakes can be read all the same, so that the rules can be asked about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from functools import cache
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ValidationError, create_model
from pydantic_core import ErrorDetails

from perdure.spec.document import Path
from perdure.spec.grammar.base import is_list, is_mapping
from perdure.spec.rules.base import Pattern, pattern
from perdure.spec.wording import steps_of

Model = TypeVar("Model", bound=BaseModel)
_ROUNDS = 8
"""Leaving a value out can make what is around it wrong, once for each level of the models."""

_DEEPEST = 100


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
    return create_model(model.__name__, __base__=model, **optional) if optional else model


class Salvage:
    """Values that are wrong are left out with the key they stand under, until the rest can be read."""

    def __init__(
        self,
        model: type[BaseModel],
        mapping: Mapping[str, object],
        details: Iterable[ErrorDetails],
        meant: Iterable[Path],
    ):
        self.found: BaseModel | None = None
        """The rest, if there is any."""

        self.wrong: set[Pattern] = {pattern(path) for path in meant}
        """What is not in it, or not as it was written."""

        self._rest = cast(dict[str, object], _copied(dict(mapping)))
        self._read(partial(model), details)

    def _read(self, model: type[BaseModel], details: Iterable[ErrorDetails]) -> None:
        for _ in range(_ROUNDS):
            for detail in details:
                self._leave_out(steps_of(detail))
            try:
                self.found = model.model_validate(self._rest)
                return
            except ValidationError as error:
                details = error.errors(include_url=False, include_input=False, include_context=False)

    def _leave_out(self, path: Path) -> None:
        """The innermost key that is there on the way to what is wrong."""
        self.wrong.add(pattern(path))
        inside: object = self._rest
        owner, end = self._rest, 0
        for length, step in enumerate(path, start=1):
            if is_mapping(inside) and isinstance(step, str) and step in inside:
                owner, end = inside, length
                inside = inside[step]
            elif is_list(inside) and isinstance(step, int) and step < len(inside):
                inside = inside[step]
            else:
                break
        if end:
            owner.pop(cast(str, path[end - 1]))
            self.wrong.add(pattern(path[:end]))


def _copied(value: object, depth: int = 0) -> object:
    if depth > _DEEPEST:
        return value
    if is_mapping(value):
        return {key: _copied(item, depth + 1) for key, item in value.items()}
    return [_copied(item, depth + 1) for item in value] if is_list(value) else value
