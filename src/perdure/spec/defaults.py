"""What is in force where nobody says anything, and how plans call and order the fields."""

from __future__ import annotations

from typing import Any

from perdure.spec.grammar.ranges import CountRange
from perdure.spec.grammar.retry import ALL_RETRY_EVENTS
from perdure.spec.grammar.setting import OFF

IDLE = 300
"""Seconds an instance of a run stays when its last job has ended, if neither the run nor the fleet says; and
``IDLE_FLEET`` those of one that a fleet made for itself."""

IDLE_FLEET = 3 * 86_400


class Said(str):
    """Words in place of a value: what holds is not known here, or is nothing."""


_ANY = Said("any")
_IMAGES = Said("the image's own")
_HOSTS = Said("the default image's, or the agent's of a process")

_RUN: dict[str, Any] = {
    "spot_policy": "on-demand",
    "retry": OFF,
    "creation_policy": "reuse-or-create",
    "idle_duration": IDLE,
    "max_duration": OFF,
    "stop_duration": 300,
    "stop_grace": 10,
    "stop_signal": "SIGTERM",
    "priority": 0,
    "startup_order": "any",
    "stop_criteria": "all-done",
    "inactivity_duration": OFF,
    "image": Said("none: runs as a process, or in the default image"),
    "user": _HOSTS,
    "working_dir": _HOSTS,
    "shell": "bash",
    "gateway": Said("the default one, if there is one"),
}
_FLEET: dict[str, Any] = {"spot_policy": "auto", "retry": OFF, "idle_duration": IDLE_FLEET}
_EVERY: dict[str, Any] = dict.fromkeys(
    ("fleets", "backends", "regions", "availability_zones", "instance_types", "instances", "retry.on_exit_codes"),
    _ANY,
) | {"retry.on_events": ALL_RETRY_EVENTS, "retry.duration": 3600, "retry.scope": "replica"}
_OF_KIND: dict[str, dict[str, Any]] = {
    "task": _RUN,
    "dev-environment": _RUN | {"ide": Said("none: SSH only")},
    "service": _RUN | {"replicas": CountRange(min=1, max=1)},
    "fleet": _FLEET,
    "volume": {"auto_cleanup_duration": OFF},
    "gateway": {"replicas": 1},
}


OF_AN_IMAGE: dict[str, Any] = {"user": _IMAGES, "working_dir": _IMAGES, "shell": "sh"}
"""Defaults of a run that says its image."""


def default_of(kind: str, field: str, otherwise: object) -> object:
    """The value that a field has if nobody gives it one; words, where it depends on what is not known here."""
    return _OF_KIND.get(kind, {}).get(field, _EVERY.get(field, otherwise))


LABELS = {
    "retry": "retry policy",
    "user": "user in the job",
    "working_dir": "working directory",
    "env": "environment",
    "volumes": "mounts",
    "commands": "process",
}
"""Of fields that are not called as they are written."""

FIRST = (
    "type",
    "resources",
    "spot_policy",
    "max_price",
    "retry",
    "creation_policy",
    "idle_duration",
    "max_duration",
    "stop_duration",
    "stop_grace",
    "priority",
    "nodes",
    "groups",
    "replicas",
    "startup_order",
    "stop_criteria",
    "fleets",
    "backends",
    "regions",
    "instance_types",
    "image",
    "commands",
    "entrypoint",
    "user",
    "working_dir",
    "privileged",
    "ports",
    "env",
    "volumes",
    "tags",
)
"""In the order of a plan; what is not in it comes after, in the order of the reference."""

ALWAYS = frozenset(("", *FIRST[: FIRST.index("priority")], "image", "commands"))
"""Shown in every plan, also as defaults; the empty path is of what no field sets."""
