"""How a rule about several fields is written.

::

    @looks_at("ide", "version")
    def a_version_is_one_of_an_ide(run: DevEnvironment) -> Problems:
        if run.version is not None and run.ide is None:
            yield Problem("version", "is given without an ide", "say which: ide: vscode")

A rule gets a configuration whose single values are right, and yields a problem for each thing that is wrong, at
the path of what should be changed. It is asked whenever all that it looks at could be read, whatever is wrong
elsewhere: so a user sees every mistake at once, and none that only follows from another.

Fields are named as they are written, items of a list with ``[]``: ``groups[].commands``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from perdure.model.errors import FieldError
from perdure.spec.document import split_path

Subject = TypeVar("Subject", contravariant=True)
Pattern: TypeAlias = tuple[str, ...]
"""A path in which every index is ``[]``."""


class Problem(NamedTuple):
    """Something that can never be right, or not yet be done."""

    path: str
    message: str
    """A predicate of the field: ``is given without an ide``."""

    hint: str | None = None


Problems: TypeAlias = Iterator[Problem]


@dataclass(frozen=True)
class Rule(Generic[Subject]):
    """A function that finds problems, and the fields it looks at."""

    find: Callable[[Subject], Problems]
    looks_at: frozenset[Pattern]

    def may_be_asked(self, wrong: Set[Pattern]) -> bool:
        """Whether nothing it looks at, nor anything in it or around it, is among what could not be read."""
        return not any(field[: len(flaw)] == flaw[: len(field)] for field in self.looks_at for flaw in wrong)


@dataclass(frozen=True)
class Rules(Generic[Subject]):
    """Of one kind of configuration."""

    always: tuple[Rule[Subject], ...] = ()
    """Asked of whatever is read."""

    at_submission: tuple[Rule[Subject], ...] = ()
    """Asked once flags and profile are in it, too: these may mend what a file alone has wrong, or spoil it."""


def looks_at(*fields: str) -> Callable[[Callable[[Subject], Problems]], Rule[Subject]]:
    """Makes a rule of a function."""
    patterns = frozenset(pattern(split_path(field.replace("[]", "[0]"))) for field in fields)

    def rule(find: Callable[[Subject], Problems]) -> Rule[Subject]:
        return Rule(find, patterns)

    return rule


def pattern(path: tuple[str | int, ...]) -> Pattern:
    """Where in any configuration, not in this one: with ``[]`` for each index."""
    return tuple("[]" if isinstance(step, int) else step for step in path)


def twice(names: list[str]) -> Iterator[tuple[int, int]]:
    """The positions of each name that was there before, and of where it was first."""
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        if first.setdefault(name, index) != index:
            yield index, first[name]


def field_errors(problems: Iterable[Problem]) -> list[FieldError]:
    return [FieldError(path=path, message=message, hint=hint) for path, message, hint in problems]
