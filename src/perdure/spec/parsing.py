"""Which configuration a mapping is, and its model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from pydantic import BaseModel

from perdure.model.errors import FieldError, InvalidConfiguration
from perdure.spec.checking import check, entries_of, field_error, in_order, lines_of, source_of
from perdure.spec.document import Lines
from perdure.spec.grammar.base import told
from perdure.spec.models.development import DevEnvironment
from perdure.spec.models.fleet import FleetConfiguration
from perdure.spec.models.profile import Profile, ProfilesFile
from perdure.spec.models.run import Task
from perdure.spec.models.service import Service
from perdure.spec.models.standing import CloudVolume, Gateway, KubernetesVolume, VolumeFields
from perdure.spec.refusals import not_yet
from perdure.spec.rules import Rule, rules_of
from perdure.spec.salvage import partial
from perdure.spec.wording import kind_of, nearest

RunConfiguration: TypeAlias = Task | Service | DevEnvironment
Configuration: TypeAlias = RunConfiguration | FleetConfiguration | VolumeFields | Gateway

RUN_TYPES: dict[str, type[RunConfiguration]] = {
    "dev-environment": DevEnvironment,
    "task": Task,
    "service": Service,
}
_OTHER_TYPES: dict[str, type[FleetConfiguration | Gateway]] = {"fleet": FleetConfiguration, "gateway": Gateway}
_VOLUMES: dict[str, type[VolumeFields]] = {
    "aws": CloudVolume,
    "gcp": CloudVolume,
    "runpod": CloudVolume,
    "kubernetes": KubernetesVolume,
}
TYPES = (*RUN_TYPES, "fleet", "volume", "gateway", "preset")


def parse(
    mapping: object,
    lines: Lines | None = None,
    *,
    submitted: bool = False,
    also: Sequence[Rule[Any]] = (),
    elsewhere: Iterable[str] = (),
) -> Configuration:
    """A configuration of any type, as written; whether this version can honour it is not asked (``not_yet``).

    Args:
        submitted: the rules of submission are asked, too (``invalid`` asks them alone): for ``also`` and
            ``elsewhere`` see ``rules_of``.

    Raises:
        InvalidConfiguration: with every mistake.
    """
    lines = lines or lines_of(mapping)
    entries = entries_of(mapping)
    found = _type(entries, lines)
    if found == "preset":
        hint = "run it as a service, with the model and resources that the preset would find"
        raise _refused(entries, "type", "is preset, and presets are not supported", hint, lines)
    model = RUN_TYPES.get(found) or _OTHER_TYPES.get(found) or _volume(entries, lines)
    rules = rules_of(model, submitted=submitted, also=also, elsewhere=elsewhere)
    return check(model, entries, lines, rules, _others(model))


def parse_run(mapping: object, lines: Lines | None = None, *, submitted: bool = False) -> RunConfiguration:
    """A run's configuration as written.

    Raises:
        InvalidConfiguration: with every mistake.
    """
    lines = lines or lines_of(mapping)
    entries = entries_of(mapping)
    found = _type(entries, lines)
    if found not in RUN_TYPES:
        raise InvalidConfiguration([not_a_run(found, lines)], source=source_of(entries))
    model = RUN_TYPES[found]
    return check(model, entries, lines, rules_of(model, submitted=submitted), _others(model))


def not_a_run(kind: str, lines: Lines | None) -> FieldError:
    """Of a configuration of another kind, where a run is wanted."""
    hint = f"a run is a {', '.join(RUN_TYPES)}"
    return field_error("type", f"is {kind}, which is not a run", hint, lines=lines)


def parse_fleet(mapping: object, lines: Lines | None = None) -> FleetConfiguration:
    """A fleet's configuration, as written and possible.

    Raises:
        InvalidConfiguration: with every mistake, or if there is none, with all that cannot be honoured yet.
    """
    lines = lines or lines_of(mapping)
    entries = entries_of(mapping)
    found = _type(entries, lines)
    if found != "fleet":
        raise _refused(entries, "type", f"is {found}, where fleet is wanted", None, lines)
    rules = rules_of(FleetConfiguration, submitted=True)
    fleet = check(FleetConfiguration, entries, lines, rules, _others(FleetConfiguration))
    if errors := not_yet(fleet):
        located = [lines.locate(error) for error in errors] if lines else errors
        raise InvalidConfiguration(in_order(located), source=source_of(mapping))
    return fleet


def parse_profiles(document: object, lines: Lines | None = None) -> tuple[Profile, ...]:
    """The profiles of a ``profiles.yml``, in its order.

    Raises:
        InvalidConfiguration: with every mistake, at ``profiles[1].max_price`` and its line.
    """
    return check(ProfilesFile, entries_of(document), lines or lines_of(document)).profiles


def parse_flags(mapping: object, kind: str = "task", lines: Lines | None = None) -> RunConfiguration:
    """Some fields of a run of this kind, as flags give them. Only those in ``model_fields_set`` were given; all
    others, and ``type``, hold nothing that may be used.

    Raises:
        InvalidConfiguration: with every mistake in what is given, by its path: ``resources.gpu``.
    """
    return check(partial(RUN_TYPES[kind]), entries_of(mapping), lines or lines_of(mapping))


def _others(model: type[BaseModel]) -> tuple[type[BaseModel], ...]:
    kinds = {**RUN_TYPES, **_OTHER_TYPES, **_VOLUMES}.values()
    return tuple(kind for kind in kinds if kind_of(kind) != kind_of(model))


def _type(entries: Mapping[str, object], lines: Lines | None) -> str:
    every = f"one of {', '.join(kind for kind in TYPES if kind != 'preset')}"
    if "type" not in entries:
        raise _refused(entries, "type", "is missing", every, lines)
    found = entries["type"]
    if isinstance(found, str) and found in TYPES:
        return found
    hint = nearest(found, list(TYPES)) if isinstance(found, str) else None
    raise _refused(entries, "type", f"is {told(found)}, which is not known", hint or every, lines)


def _volume(entries: Mapping[str, object], lines: Lines | None) -> type[VolumeFields]:
    backend = entries.get("backend")
    if isinstance(backend, str) and backend in _VOLUMES:
        return _VOLUMES[backend]
    message = f"is {told(backend)}, which has no volumes" if "backend" in entries else "is missing"
    raise _refused(entries, "backend", message, f"one of {', '.join(_VOLUMES)}", lines)


def _refused(
    entries: Mapping[str, object], path: str, message: str, hint: str | None, lines: Lines | None
) -> InvalidConfiguration:
    return InvalidConfiguration([field_error(path, message, hint, lines=lines)], source=source_of(entries))
