"""What single values cannot show to be wrong: the rules about several fields, and those of submission.

``parse`` asks the rules of a kind that hold always, ``invalid`` those that hold at submission. Each kind's are to
be read from top to bottom in a file of its own; ``base`` says how one is written.
"""

from __future__ import annotations

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


def rules_of(model: type[BaseModel], *, submitted: bool = False) -> tuple[Rule[Any], ...]:
    """The rules that are asked of a configuration of this kind when it is read; ``submitted``: and when it is
    submitted."""
    rules = next((rules for kind, rules in _RULES.items() if issubclass(model, kind)), Rules[Any]())
    return (*rules.always, *rules.at_submission, *references.RULES) if submitted else rules.always


def invalid(configuration: BaseModel) -> list[FieldError]:
    """Why this configuration, with all layers in it, can never be submitted; nothing if it can.

    ``parse`` has asked the other rules already.
    """
    rules = next((rules for kind, rules in _RULES.items() if isinstance(configuration, kind)), Rules[Any]())
    asked = (*rules.at_submission, *references.RULES)
    return field_errors(problem for rule in asked for problem in rule.find(configuration))
