"""What single values cannot show to be wrong: the rules about several fields, and those of submission.

``parse`` asks the rules of a kind that hold always, ``invalid`` those that hold at submission. Each kind's are to
be read from top to bottom in a file of its own; ``base`` says how one is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel

from perdure.model.errors import FieldError
from perdure.spec import references
from perdure.spec.models.development import DevEnvironment
from perdure.spec.models.fleet import FleetConfiguration
from perdure.spec.models.run import Task
from perdure.spec.models.service import Service
from perdure.spec.models.standing import CloudVolume, Gateway, KubernetesVolume
from perdure.spec.rules.base import Problem, Problems, Rule, Rules, field_errors
from perdure.spec.rules.fleet import FLEET
from perdure.spec.rules.run import DEVELOPMENT, TASK
from perdure.spec.rules.service import SERVICE
from perdure.spec.rules.standing import CLOUD_VOLUME, GATEWAY, KUBERNETES_VOLUME
from perdure.spec.strays import references_are_where_they_are_resolved

__all__ = ["Problem", "Problems", "Rule", "invalid", "rules_of"]

_RULES: dict[type[BaseModel], Rules[Any]] = {
    Task: TASK,
    Service: SERVICE,
    DevEnvironment: DEVELOPMENT,
    FleetConfiguration: FLEET,
    CloudVolume: CLOUD_VOLUME,
    KubernetesVolume: KUBERNETES_VOLUME,
    Gateway: GATEWAY,
}


def rules_of(
    model: type[BaseModel],
    *,
    submitted: bool = False,
    also: Sequence[Rule[Any]] = (),
    elsewhere: Iterable[str] = (),
) -> tuple[Rule[Any], ...]:
    """The rules that are asked of a configuration of this kind when it is read.

    Args:
        submitted: those that are asked when it is submitted are among them.
        also: and these are.
        elsewhere: fields that another layer has a say in: rules of submission that look at them are not.
    """
    rules = _rules(model)
    return (*rules.always, *_at_submission(rules, also, elsewhere)) if submitted else rules.always


def invalid(
    configuration: BaseModel, also: Sequence[Rule[Any]] = (), elsewhere: Iterable[str] = ()
) -> list[FieldError]:
    """Why this configuration, with all layers in it, can never be submitted; nothing if it can.

    ``parse`` has asked the other rules already. For ``also`` and ``elsewhere`` see ``rules_of``.
    """
    asked = _at_submission(_rules(type(configuration)), also, elsewhere)
    return field_errors(problem for rule in asked for problem in rule.find(configuration))


def _rules(model: type[BaseModel]) -> Rules[Any]:
    return next((rules for kind, rules in _RULES.items() if issubclass(model, kind)), Rules[Any]())


def _at_submission(rules: Rules[Any], also: Sequence[Rule[Any]], elsewhere: Iterable[str]) -> tuple[Rule[Any], ...]:
    unasked = {(field,) for field in elsewhere}
    asked = (*rules.at_submission, *references.RULES, references_are_where_they_are_resolved, *also)
    return tuple(rule for rule in asked if rule.may_be_asked(unasked))
