"""What a user wrote for one configuration: the file, the flags above it, the profile below it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from perdure.cli.documents import Source, read
from perdure.cli.errors import Mistake, NotYet, mistakes, show_error
from perdure.cli.flags import Given
from perdure.cli.terminal import print_json
from perdure.client.profiles import InvalidProfiles, Profile, chosen
from perdure.model.base import Message
from perdure.model.errors import FieldError, InvalidConfiguration
from perdure.model.origins import Origin
from perdure.spec import reading
from perdure.spec.document import Document, split_path
from perdure.spec.reading import Reading

COMMAND_LINE = "the command line"


class Refused(Message):
    """What a command with ``--json`` prints instead of its result, if what somebody wrote is not right."""

    errors: tuple[Mistake, ...]


class Wrong(Exception):
    """What somebody wrote is not right: with every mistake, by the file that it is in."""

    def __init__(self, *errors: tuple[InvalidConfiguration, str | None]):
        """``errors``: each with the text of its file, to show its lines."""
        super().__init__(*(error for error, _ in errors))
        self.errors = errors

    def tell(self, *, json: bool = False) -> int:
        """Say so; the exit code."""
        if json:
            print_json(Refused(errors=mistakes((error for error, _ in self.errors), COMMAND_LINE)))
        else:
            for error, text in self.errors:
                show_error(error, text)
        return 1


@dataclass(frozen=True)
class Written:
    """One configuration with its layers, each as it was written."""

    source: Source
    document: Document
    flags: Given = field(default_factory=Given)
    profile: Profile | None = None

    @property
    def kind(self) -> str:
        """Its type, if it has one."""
        found = self.document.get("type")
        return found if isinstance(found, str) else ""

    @cached_property
    def reading(self) -> Reading:
        """All layers in one.

        Raises:
            InvalidConfiguration: with every mistake of all of them.
        """
        return reading.read(self.document, flags=self.flags.mapping, profile=self.below)

    @property
    def merged(self) -> dict[str, Any]:
        """The configuration, as if all of it were written in one place."""
        return self.reading.layered.mapping

    @property
    def below(self) -> dict[str, Any]:
        """The profile as a mapping, as it travels."""
        return self.profile.mapping if self.profile is not None else {}

    def check(self) -> None:
        """
        Raises:
            InvalidConfiguration: it can never be right; with every reason.
        """
        if self.reading.invalid:
            raise InvalidConfiguration(self.reading.invalid)

    def check_possible(self) -> None:
        """
        Raises:
            NotYet: it is more than this version can do; with every reason.
        """
        if self.reading.not_yet:
            raise NotYet(self.reading.not_yet)

    def over(self, env: Mapping[str, Any]) -> Written:
        """The same, with variables that the command line gives."""
        if not env:
            return self
        return replace(self, flags=Given({**self.flags.mapping, "env": env}, {**self.flags.names, "env": "-e"}))

    @contextmanager
    def placed(self) -> Iterator[None]:
        """Mistakes found in ``merged`` leave this block as mistakes of the layer that they are in."""
        try:
            yield
        except InvalidConfiguration as error:
            raise InvalidConfiguration([self.reading.layered.placed(one) for one in error.errors]) from error

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Mistakes leave this block each with the line that it is about.

        Raises:
            Wrong
        """
        try:
            yield
        except InvalidConfiguration as error:
            found = self.by_source(error.errors)
            told = ((type(error)(one.errors, source=one.source), self.text(one.source)) for one in found)
            raise Wrong(*told) from error

    def by_source(self, errors: Iterable[FieldError]) -> list[InvalidConfiguration]:
        """Errors about the whole, each with file, line and column of the layer that it is in."""
        found: dict[str, list[FieldError]] = {}
        for error in errors:
            source, located = self._located(error)
            found.setdefault(source, []).append(located)
        return [InvalidConfiguration(located, source=source) for source, located in found.items()]

    def text(self, source: str | None) -> str | None:
        """Of the configuration, or of the file that the profile is in."""
        if source == self.source.name:
            return self.source.text.decode(errors="replace")
        return self.profile.text if self.profile is not None and source == self.profile.source else None

    def line(self, origin: Origin) -> tuple[str, int] | None:
        """File and line of a value, if it is from one."""
        if origin.layer == "configuration" and split_path(origin.path)[:1] and self._has(origin.path):
            return self.source.name, self.document.lines.at(split_path(origin.path), key=True).line
        if origin.layer == "profile" and self.profile is not None:
            located = self.profile.locate(FieldError(path=origin.path, message=""))
            return self.profile.source, located.line or 1
        return None

    def words(self, origin: Origin) -> str:
        """``--gpu``, ``train.yml:3``, ``profile large, .perdure/profiles.yml:7``, ``fleet gpus``, ``default``."""
        if origin.layer == "flag":
            return self.flags.flag_of(origin.path) or origin.words()
        line = self.line(origin)
        if line is None:
            return "made up" if origin.layer == "configuration" and origin.path == "name" else origin.words()
        place = f"{line[0]}:{line[1]}"
        return place if origin.layer == "configuration" else f"{origin.words()}, {place}"

    def _has(self, path: str) -> bool:
        return str(split_path(path)[0]) in self.document

    def _located(self, error: FieldError) -> tuple[str, FieldError]:
        match error.layer:
            case "flag":
                name = self.flags.flag_of(error.path) or error.path
                return COMMAND_LINE, error.but(path=name, line=None, column=None)
            case "profile" if self.profile is not None:
                return self.profile.source, self.profile.locate(error)
            case _:
                return self.source.name, self.document.lines.locate(error)


def gather(file: str | None, flags: Given, profile: str | None, *, no_profile: bool) -> Written:
    """What is written in ``file`` (as in ``read``), and in the profile that holds.

    Raises:
        Wrong: one of them is not right; if the profile is not, with the mistakes of both.
        UserError: one of them cannot be read.
    """
    source = read(file)
    try:
        holds = profile_that_holds(profile, no_profile=no_profile)
    except Wrong as wrong:
        raise Wrong(*_wrong_without(source, flags), *wrong.errors) from wrong
    return Written(source, loaded(source), flags, holds)


def _wrong_without(source: Source, flags: Given) -> tuple[tuple[InvalidConfiguration, str | None], ...]:
    """What is not right whatever the profile says."""
    try:
        written = Written(source, loaded(source), flags)
        with written.explained():
            written.check()
    except Wrong as wrong:
        return wrong.errors
    return ()


def loaded(source: Source) -> Document:
    """
    Raises:
        Wrong: it is not YAML, or not a mapping.
    """
    try:
        return source.load()
    except InvalidConfiguration as error:
        raise Wrong((error, source.text.decode(errors="replace"))) from error


def profile_that_holds(asked: str | None, *, no_profile: bool) -> Profile | None:
    """
    Raises:
        Wrong: its file is not right.
        UserError: there is none of that name.
    """
    try:
        return chosen(asked, none=no_profile)
    except InvalidProfiles as error:
        raise Wrong((error, error.text)) from error
