"""``perdure validate``: what can be said of configurations without a server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from rich.text import Text

from perdure import spec
from perdure.cli.documents import Unreadable, printable, read
from perdure.cli.errors import Mistake, mistakes, show_error
from perdure.cli.terminal import print_json, say, visible
from perdure.cli.written import Written
from perdure.client.inputs import environment
from perdure.client.profiles import InvalidProfiles, Profile, UnreadableProfiles, chosen
from perdure.model.base import Message
from perdure.model.errors import InvalidConfiguration, UserError
from perdure.spec.document import Document, holds_profiles
from perdure.spec.remarks import named_twice

EXIT = {"valid": 0, "invalid": 1, "unreadable": 2}


class Verdict(Message):
    """On one file."""

    file: str
    verdict: Literal["valid", "invalid", "unreadable"]
    kind: str = ""
    """Its ``type``; ``profiles`` of a file of profiles; empty if that is not known."""

    profile: str | None = None
    """The one that it was checked with."""

    errors: tuple[Mistake, ...] = ()
    not_yet: tuple[Mistake, ...] = ()
    """What is right, and more than this version can do: it would be refused at submission."""

    notes: tuple[str, ...] = ()


class Verdicts(Message):
    files: tuple[Verdict, ...]


@dataclass
class Examined:
    """One file, and what was found in it."""

    file: str
    text: str | None = None
    written: Written | None = None
    unreadable: UserError | None = None
    kind: str = ""
    errors: list[InvalidConfiguration] = field(default_factory=list[InvalidConfiguration])
    not_yet: list[InvalidConfiguration] = field(default_factory=list[InvalidConfiguration])
    notes: list[str] = field(default_factory=list[str])

    @property
    def verdict(self) -> Verdict:
        profile = self.written.profile if self.written is not None else None
        return Verdict(
            file=self.file,
            verdict="unreadable" if self.unreadable else "invalid" if self.errors else "valid",
            kind=self.kind,
            profile=profile.name if profile is not None else None,
            errors=(self._unread(),) if self.unreadable else mistakes(self.errors, self.file),
            not_yet=mistakes(self.not_yet, self.file),
            notes=tuple(self.notes),
        )

    def _unread(self) -> Mistake:
        assert self.unreadable is not None
        return Mistake(file=self.file, path="", message=self.unreadable.message, hint=self.unreadable.hint)


def validate_all(files: list[str], *, profile: str | None, no_profile: bool, json: bool) -> int:
    """The exit code: that of the worst file."""
    verdicts: list[Verdict] = []
    worst = 0
    for one in _each(files, profile, no_profile=no_profile):
        verdict = one.verdict
        worst = max(worst, EXIT[verdict.verdict])
        if json:
            verdicts.append(verdict)
        else:
            _show(one)
    if json:
        print_json(Verdicts(files=tuple(verdicts)))
    return worst


def _each(files: list[str], profile: str | None, *, no_profile: bool) -> Iterator[Examined]:
    """One at a time: what was read of a file is let go of before the next one is looked at."""
    found = None if no_profile else _profile(profile)
    if isinstance(found, Examined):
        yield found
        found = None
    for file in files:
        yield examine(file, found)


def examine(file: str, profile: Profile | None) -> Examined:
    """Every mistake in one file, and in how it and the profile go together."""
    found = Examined(printable(file))
    try:
        source = read(file)
    except Unreadable as error:
        found.unreadable = error
        return found
    found.file, found.text = source.name, source.text.decode(errors="replace")
    try:
        document = source.load()
    except InvalidConfiguration as error:
        found.errors.append(error)
        return found
    found.written = Written(source, document, profile=profile)
    try:
        _look(found, found.written, document)
    except InvalidConfiguration as error:
        found.errors += found.written.by_source(error.errors)
    return found


def _look(found: Examined, written: Written, document: Document) -> None:
    """
    Raises:
        InvalidConfiguration
    """
    if "type" not in document and ("profiles" in document or holds_profiles(found.file)):
        found.kind = "profiles"
        found.notes = [*named_twice(spec.parse_profiles(document))]
        return
    found.kind = written.kind
    written.check()
    found.not_yet = written.by_source(written.reading.not_yet)
    found.notes = [*written.reading.warnings, *_missing(written.merged)]


def _missing(configuration: dict[str, Any]) -> list[str]:
    """Of the environment here."""
    try:
        environment(configuration)
    except InvalidConfiguration as error:
        return [one.message for one in error.errors]
    except UserError as error:
        return [error.message]
    return []


def _profile(name: str | None) -> Profile | Examined | None:
    """The profile that holds; or what is wrong with the file it should be in."""
    try:
        return chosen(name)
    except InvalidProfiles as error:
        return Examined(error.source or "profiles.yml", error.text, kind="profiles", errors=[error])
    except UnreadableProfiles as error:
        return Examined(error.source, unreadable=error, kind="profiles")


def _show(one: Examined) -> None:
    if one.unreadable is not None:
        show_error(one.unreadable)
        return
    if one.errors:
        for error in one.errors:
            show_error(error, one.written.text(error.source) if one.written is not None else one.text)
        return
    profile = one.written.profile if one.written is not None else None
    with_it = f" with profile {profile.name}" if profile is not None and one.kind != "profiles" else ""
    but = " This version cannot run it yet:" if one.not_yet else ""
    say().print(Text(visible(f"{one.file}{with_it} is valid.{but}")), soft_wrap=True)
    for mistake in mistakes(one.not_yet, one.file):
        say().print(Text(visible(f"  {mistake.words()}")), soft_wrap=True)
    for note in one.notes:
        say().print(Text(visible(f"  Note: {note}")), soft_wrap=True)
