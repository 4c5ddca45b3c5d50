"""A configuration with all its layers, read once: what is in force, what is wrong, and what cannot be done yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from pydantic import BaseModel

from perdure.model.errors import FieldError, InvalidConfiguration, bounded
from perdure.model.origins import EffectiveValue, Layer
from perdure.spec.checking import check, entries_of, in_order, lines_of, source_of
from perdure.spec.document import Lines
from perdure.spec.grammar.base import is_mapping
from perdure.spec.layers import Layered, Part, merge, written_path
from perdure.spec.models.fleet import FleetConfiguration
from perdure.spec.models.profile import Profile
from perdure.spec.models.run import RunFields
from perdure.spec.parsing import RUN_TYPES, Configuration, parse, parse_flags
from perdure.spec.references import Texts
from perdure.spec.refusals import not_yet
from perdure.spec.remarks import doubtful, outdated, warnings
from perdure.spec.rules import Rule, invalid
from perdure.spec.shown import effective_values
from perdure.spec.submission import Submission, deadline_ahead_of

Parsed = TypeVar("Parsed", bound=BaseModel)

MOST_WARNINGS = 20


@dataclass(frozen=True)
class Placing:
    """Turns what is said about the merged configuration to what the user wrote."""

    layered: Layered
    lines: Lines | None

    def errors(self, found: Iterable[FieldError]) -> list[FieldError]:
        return bounded(in_order([self._placed(one) for one in found]))

    def _placed(self, error: FieldError) -> FieldError:
        placed = self.layered.placed(error)
        return self.lines.locate(placed) if self.lines else placed


@dataclass(frozen=True)
class Reading:
    """What came of reading. Every error is told in the layer it is in, with its line where that is known."""

    configuration: Configuration
    """All layers in one."""

    layered: Layered
    texts: Texts
    placing: Placing
    invalid: list[FieldError]
    """What can never be right."""

    not_yet: list[FieldError]
    """What is right, and this version cannot honour."""

    warnings: tuple[str, ...]

    @property
    def effective(self) -> tuple[EffectiveValue, ...]:
        """Every value in force, as far as that is known without a fleet and a worker's settings."""
        return effective_values(self.configuration, self.layered)


def read(
    mapping: object,
    *,
    flags: Mapping[str, Any] | None = None,
    profile: Mapping[str, Any] | None = None,
    project: str | None = None,
    lines: Lines | None = None,
    submission: Submission | None = None,
) -> Reading:
    """A configuration of any kind. Flags stand above and a profile below a run; a fleet takes from a profile what
    is a field of fleets; other kinds have no layers.

    Args:
        mapping: as written: anything JSON can hold.
        flags: a part of a configuration (``{"resources": {"gpu": "A100"}}``).
        profile: one item of ``profiles.yml``.
        project: whose it would be, if that is known.
        submission: what comes with it, if it is submitted.

    Raises:
        InvalidConfiguration: a layer cannot be understood; with every mistake of all of them.
    """
    lines = lines or lines_of(mapping)
    also = submission.rules() if submission else (deadline_ahead_of(datetime.now(UTC)),)
    layered, configuration = _in_layers(mapping, flags or {}, profile or {}, lines, also)
    placing = Placing(layered, lines)
    texts = Texts(configuration)
    told = warnings(configuration) if isinstance(configuration, RunFields) else ()
    return Reading(
        configuration=configuration,
        layered=layered,
        texts=texts,
        placing=placing,
        invalid=placing.errors(invalid(configuration, also)),
        not_yet=placing.errors(not_yet(configuration, project)),
        warnings=_few((*told, *outdated(layered.mapping), *doubtful(layered.mapping), *texts.warnings(layered))),
    )


def _few(warnings: tuple[str, ...]) -> tuple[str, ...]:
    """As many as anybody reads: they are part of a plan, which travels through Temporal."""
    more = len(warnings) - MOST_WARNINGS
    return warnings if more <= 0 else (*warnings[:MOST_WARNINGS], f"there are {more} more warnings")


def _in_layers(
    mapping: object,
    flags: Mapping[str, Any],
    profile: Mapping[str, Any],
    lines: Lines | None,
    also: Sequence[Rule[BaseModel]],
) -> tuple[Layered, Configuration]:
    errors: list[FieldError] = []
    elsewhere = {*flags, *profile} - {"name"}  # a profile's name is its own
    own = _part(errors, "configuration", mapping, lambda it: _parsed(it, lines, also, elsewhere))
    kind = mapping.get("type") if is_mapping(mapping) else None
    above = below = None
    if flags and isinstance(kind, str) and kind in RUN_TYPES:
        above = _part(errors, "flag", flags, lambda it: parse_flags(it, kind))
    if profile:
        below = _part(errors, "profile", profile, lambda it: check(Profile, entries_of(it)))
    if errors and own is not None:
        errors += Placing(merge(own), lines).errors(invalid(own.parsed, also, elsewhere))
    if errors or own is None:
        raise InvalidConfiguration(in_order(errors), source=source_of(mapping))
    if not isinstance(own.parsed, RunFields | FleetConfiguration) or above is below is None:
        return merge(own), own.parsed
    layered = merge(own, above, below)
    try:
        return layered, _parsed(layered.mapping, None, also)
    except InvalidConfiguration as error:
        found = Placing(layered, lines).errors(error.errors)
        raise InvalidConfiguration(found, source=source_of(mapping)) from None


def _parsed(
    mapping: object, lines: Lines | None, also: Sequence[Rule[BaseModel]], elsewhere: Iterable[str] = ()
) -> Configuration:
    """If it has mistakes, they are told with those against the rules of submission, which else are asked once all
    layers are in it; ``elsewhere``: of what another layer may still change, only these mistakes are told."""
    try:
        return parse(mapping, lines)
    except InvalidConfiguration:
        return parse(mapping, lines, submitted=True, also=also, elsewhere=elsewhere)


def _part(
    errors: list[FieldError], layer: Layer, written: object, parsed: Callable[[object], Parsed]
) -> Part[Parsed] | None:
    """The layer; None, and its mistakes are among the others, if it cannot be understood."""
    try:
        found = parsed(written)
    except InvalidConfiguration as error:
        errors += [one.but(layer=layer, path=written_path(one.path, written)) for one in error.errors]
        return None
    return Part(layer, entries_of(written), found, found.name if isinstance(found, Profile) else "")
