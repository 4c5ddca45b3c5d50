"""What pydantic found wrong, in words that a user can act on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, cast, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from perdure.model.errors import FieldError
from perdure.spec.document import Lines, Path
from perdure.spec.grammar.base import split_by_yaml, told, without_login
from perdure.spec.grammar.hardware import ResourcesSpec
from perdure.spec.models.profile import Profile, ProfilesFile, ScheduleSpec
from perdure.spec.models.run import Task
from perdure.spec.syntax import missing_space

_FEW = 12
"""Keys that are told, where one is not known; of more, where to look them up."""

_COMMANDS = ("commands", "init", "setup", "entrypoint")
_SHOWN = 60
"""Characters of a command that are written out in a hint."""

RENAMED = {
    "termination_idle_time": "idle_duration",
    "retry_policy": "retry",
    "spot": "spot_policy",
    "pool_name": "fleets",
    "default_pool": "fleets",
    "replica": "replicas",
    "timeout": "max_duration",
    "docker_image": "image",
    "container": "image",
    "script": "commands",
    "run": "commands",
    "args": "commands",
    "environment": "env",
    "workdir": "working_dir",
    "cwd": "working_dir",
    "budget": "max_cost",
}
"""What old files, and hasty hands, write for a field."""

EXAMPLES = {
    "arn": "arn: arn:aws:acm:eu-west-1:1:certificate/x",
    "backend": "backend: aws",
    "container_port": "container_port: 8000",
    "count": "count: 1..4",
    "cron": 'cron: "15 23 * * *"',
    "fleet": "fleet: my-fleet",
    "entrypoint": "entrypoint: python -m trainer",
    "env": "env: [MODE=fast]",
    "files": "files: [train.py]",
    "fleets": "fleets: [gpus]",
    "format": "format: openai",
    "groups": "groups: [{nodes: 2, commands: [python train.py]}]",
    "headers": "headers: [{name: Accept, value: text/plain}]",
    "image": "image: python:3.12",
    "header": "header: Authorization",
    "hostname": "hostname: 10.0.0.7",
    "hosts": "hosts: [10.0.0.7]",
    "identity_file": "identity_file: ~/.ssh/id_ed25519",
    "instance": "instance: 0",
    "instance_path": "instance_path: /mnt/data",
    "key": "key: HF_TOKEN",
    "local_path": "local_path: .",
    "metric": "metric: rps",
    "min_gpu_utilization": "min_gpu_utilization: 10",
    "name": "name: my-name",
    "nodes": "nodes: 2",
    "password": "password: ${{ secrets.password }}",
    "path": "path: /data",
    "port": "port: 8000",
    "ports": "ports: [8000]",
    "probes": "probes: [{type: http, url: /health}]",
    "profiles": "profiles: [{name: large, max_price: 2}]",
    "rate_limits": "rate_limits: [{prefix: /api/, rps: 10}]",
    "region": "region: eu-west-1",
    "replicas": "replicas: 1..4",
    "repos": "repos: [.]",
    "resources": "resources: {gpu: 1}",
    "rps": "rps: 10",
    "run": "run: prepare",
    "schedule": 'schedule: {cron: "15 23 * * *"}',
    "size": "size: 100GB..",
    "tags": "tags: {team: vision}",
    "target": "target: 10",
    "time_window": "time_window: 30m",
    "url": "url: https://example.com/hook",
    "user": "user: ubuntu",
    "username": "username: me",
    "value": "value: text",
    "volumes": "volumes: [/mnt/data:/data]",
    "working_dir": "working_dir: /app",
}
"""What to write where a field is missing, or is nothing like what it should be."""

_SAY_IT_ALL = (
    "greater_than",
    "greater_than_equal",
    "less_than",
    "less_than_equal",
    "literal_error",
    "string_too_long",
    "too_long",
)
"""Mistakes whose message says what would be right."""


class Wording:
    """Of the mistakes in one mapping.

    Args:
        known: by the id of a mapping in it, the model it was held to: ``Written`` leaves it behind.
        others: the models of other kinds of configurations, whose fields may have been meant.
    """

    def __init__(
        self,
        model: type[BaseModel],
        mapping: Mapping[str, object],
        known: Mapping[int, type[BaseModel]],
        lines: Lines | None,
        others: Sequence[type[BaseModel]] = (),
    ):
        self._model = model
        self._mapping = mapping
        self._known = known
        self._lines = lines
        self._others = others
        self.meant: list[Path] = []
        """Fields that were probably meant by keys that are not known."""

    def errors(self, details: Sequence[ErrorDetails]) -> list[FieldError]:
        """One for each, but of what is wrong with both ends of one short form."""
        errors = [self._error(detail) for detail in details]
        return list({(error.path, error.message): error for error in errors}.values())

    def _error(self, detail: ErrorDetails) -> FieldError:
        steps = self._written(detail)
        unknown = detail["type"] == "extra_forbidden"
        message, hint = self._unknown_key(steps) if unknown else in_words(detail)
        place = self._lines.at(steps, key=unknown) if self._lines else None
        return FieldError(
            path=dotted(steps),
            message=message,
            hint=hint,
            line=place.line if place else None,
            column=place.column if place else None,
        )

    def _written(self, detail: ErrorDetails) -> Path:
        """The path as far as it is in what the user wrote: a short form has no fields."""
        steps = steps_of(detail)
        inside: object = self._mapping
        for length, step in enumerate(steps):
            inner = _inside(inside, step)
            last = length == len(steps) - 1
            if inner is None and not (last and isinstance(inside, Mapping | list)):
                return steps if isinstance(inside, Mapping) and step in inside else steps[:length]
            inside = inner
        return steps

    def _unknown_key(self, steps: Path) -> tuple[str, str | None]:
        parent: object = self._mapping
        for step in steps[:-1]:
            parent = _inside(parent, step)
        owner = self._model if len(steps) == 1 else self._known.get(id(parent))
        names = sorted(owner.model_fields) if owner else []
        name = str(steps[-1])
        message = "is not a key known here"
        renamed = RENAMED.get(name)
        if meant := renamed if renamed in names else closest(name, names):
            self.meant.append((*steps[:-1], meant))
            return message, f"did you mean {meant}?"
        if owner is Profile and name in {**Task.model_fields, **ResourcesSpec.model_fields}:
            return message, "a profile may not have it: write it into the configuration of the run"
        if inner := _further_in(name, owner):
            return message, inner
        if len(steps) == 1:
            kinds = dict.fromkeys(kind_of(other) for other in self._others if name in other.model_fields)
            return message, f"it is for {', '.join(kinds)} only" if kinds else self._known_keys(names)
        if steps[0] in ("groups", "replicas") and name in self._model.model_fields:
            return message, f"it is for the whole {kind_of(self._model)}: write it further out"
        return message, self._known_keys(names)

    def _known_keys(self, names: list[str]) -> str | None:
        if 0 < len(names) <= _FEW:
            return f"known here: {', '.join(names)}"
        kind = "profiles" if self._model in (Profile, ProfilesFile) else kind_of(self._model)
        return f"`perdure schema {kind}` lists all that are" if kind.islower() else None


def _further_in(name: str, owner: type[BaseModel] | None) -> str | None:
    """The hint for a key that belongs into a mapping here: ``gpu`` into ``resources``."""
    for outer, inner in (("resources", ResourcesSpec), ("schedule", ScheduleSpec)):
        if owner is None or outer not in owner.model_fields:
            continue
        fields = sorted(inner.model_fields)
        if meant := name if name in fields else closest(name, fields):
            return f"it belongs under {outer}: write {meant} in a line below it, indented by two spaces"
    return None


def kind_of(model: type[BaseModel]) -> str:
    """The ``type`` of the configurations of this model; of another one, its name."""
    field = model.model_fields.get("type")
    return str(get_args(field.annotation)[0]) if field is not None else model.__name__


def steps_of(detail: ErrorDetails) -> Path:
    """Where it is: without the marks of pydantic's and our own unions."""
    return tuple(
        step for step in detail["loc"] if not (isinstance(step, str) and (step.startswith("<") or step == "[key]"))
    )


def dotted(path: Path) -> str:
    words = ""
    for step in path:
        if isinstance(step, int):
            words += f"[{step}]"
        else:
            step = without_login(step)
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
        if close := get_close_matches(spelling, known, n=1, cutoff=0.75):
            return close[0]
    return None


def _inside(value: object, step: str | int) -> object:
    try:
        return cast(Any, value)[step]
    except (KeyError, IndexError, TypeError):
        return None


def in_words(detail: ErrorDetails) -> tuple[str, str | None]:
    """The mistake, and what to write instead."""
    message, hint = _message(detail)
    field = next((step for step in reversed(steps_of(detail)) if isinstance(step, str)), "")
    if field in _COMMANDS and (command := split_by_yaml(detail["input"])) and len(command) <= _SHOWN:
        doubled = without_login(command).replace("'", "''")
        return message, f"put the text into quotes: '{doubled}'"
    if hint is None and detail["type"] not in _SAY_IT_ALL:
        hint = f"such as {EXAMPLES[field]}" if field in EXAMPLES else None
    return message, hint


def _message(detail: ErrorDetails) -> tuple[str, str | None]:
    context: dict[str, Any] = detail.get("ctx", {})
    value = detail["input"]
    given = f"{value:g}" if isinstance(value, float) else told(value)
    match detail["type"]:
        case "perdure":
            message, _, hint = str(context.get("text", detail["msg"])).partition("\n")
            return message, context.get("hint") or hint or None
        case "missing":
            return "is missing", None
        case "literal_error":
            wanted = str(context["expected"]).replace("'", "").replace(" or ", ", ")
            hint = nearest(value, wanted.split(", ")) if isinstance(value, str) else None
            return f"is {given}, where {'one of ' if ', ' in wanted else ''}{wanted} is wanted", hint
        case "greater_than_equal":
            return f"is {given}: at least {context['ge']:g} is wanted", None
        case "less_than_equal":
            return f"is {given}: at most {context['le']:g} is allowed", None
        case "greater_than":
            return f"is {given}: more than {context['gt']:g} is wanted", None
        case "list_type" | "tuple_type":
            hint = "write it as a list: each item in its own line, after `- `"
            if isinstance(value, str) and value.startswith("-") and missing_space(value):
                hint = "write a space after each `-`"
            return f"is {given}, where a list is wanted", hint if value is not None else None
        case "dict_type" | "model_type" | "model_attributes_type":
            hint = missing_space(value) if isinstance(value, str) else None
            if value is None and len(detail["loc"]) == 1:
                hint = "indent by two spaces what belongs to it"
            return f"is {given}, where a mapping is wanted", hint
        case "string_too_short":
            return "is empty", None
        case "string_too_long":
            return f"is longer than {context['max_length']} characters", None
        case "too_short":
            return "is empty: at least one item is wanted", None
        case "too_long":
            return f"has too many items: at most {context['max_length']} are allowed", None
        case _:
            return detail["msg"][:1].lower() + detail["msg"][1:], None
