"""What single values cannot show to be wrong: the rules about several fields, and those of submission.

``parse`` asks the rules of a kind that hold always, ``invalid`` those that hold at submission. Each kind's are to
be read from top to bottom in a file of its own; ``base`` says how one is written.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from perdure.model.errors import FieldError
from perdure.spec.rules.base import Problem, Problems, Rule, Rules

__all__ = ["Problem", "Problems", "Rule", "field_errors", "invalid", "rules_of"]

_RULES: dict[type[BaseModel], Rules[Any]] = {}


def rules_of(model: type[BaseModel], *, submitted: bool = False) -> tuple[Rule[Any], ...]:
    """The rules that are asked of a configuration of this kind when it is read; ``submitted``: and when it is
    submitted."""
    rules = next((rules for kind, rules in _RULES.items() if issubclass(model, kind)), Rules[Any]())
    return rules.always + rules.at_submission if submitted else rules.always


def invalid(configuration: BaseModel) -> list[FieldError]:
    """Why this configuration, with all layers in it, can never be submitted; nothing if it can.

    ``parse`` has asked the other rules already.
    """
    rules = next((rules for kind, rules in _RULES.items() if isinstance(configuration, kind)), Rules[Any]())
    return field_errors(problem for rule in rules.at_submission for problem in rule.find(configuration))


def field_errors(problems: Iterable[Problem]) -> list[FieldError]:
    return [FieldError(path=path, message=message, hint=hint) for path, message, hint in problems]
