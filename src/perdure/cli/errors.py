"""Errors on the screen: one sentence and a hint; of a configuration every mistake, its line, and a mark in it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rich.cells import cell_len
from rich.padding import Padding
from rich.text import Text

from perdure.cli.terminal import say, visible
from perdure.model.errors import FieldError, InvalidConfiguration, PerdureError
from perdure.spec.grammar.base import LOGIN

LONGEST = 200
"""Characters of a line that are shown, around the mistake."""

_PART = r"(?:[^\s,\[\]{}:#]|:(?=[^\s,\]}])|(?<=\S)#)+"
_WORD = re.compile(rf""""[^"]*"|'[^']*'|{_PART}(?:[ \t]+(?!#){_PART})*""")
"""A scalar as it is written in YAML, quoted or plain, or the beginning of one."""


class NotYet(InvalidConfiguration):
    """It is right, and more than this version can do."""


class Mistake(FieldError):
    """With the file that it is in: the configuration's, or that of the profile."""

    file: str

    def words(self) -> str:
        """``train.yml:3:7: nodes: is 'x', where a whole number is wanted``"""
        return f"{place(self.file, self)}: {in_words(self)}"


def mistakes(errors: Iterable[InvalidConfiguration], file: str) -> tuple[Mistake, ...]:
    """All of them in one list; ``file`` is of those that do not say theirs."""
    return tuple(Mistake(file=error.source or file, **dict(one)) for error in errors for one in error.errors)


def show_error(error: PerdureError, text: str | None = None) -> None:
    """``text``: the configuration that it is about, to show its lines."""
    if isinstance(error, InvalidConfiguration):
        _show_mistakes(error, text)
        return
    _line("Error: ", error.message, "bold red")
    if error.hint:
        _hint(error.hint)


def _show_mistakes(error: InvalidConfiguration, text: str | None) -> None:
    source = error.source or "configuration"
    count = f"{len(error.errors)} mistake{'s' if len(error.errors) != 1 else ''}"
    later = f"this version cannot do yet what {source} says"
    _line("Error: ", later if isinstance(error, NotYet) else f"{source} is not valid: {count}", "bold red")
    lines = text.splitlines() if text is not None else []
    for mistake in error.errors:
        _line(f"{place(source, mistake)}: ", in_words(mistake))
        if mistake.line is not None and 0 < mistake.line <= len(lines):
            for line in snippet(lines[mistake.line - 1], mistake.line, mistake.column or 1):
                say().print(line, soft_wrap=True)
        if mistake.hint:
            _hint(mistake.hint)


def place(source: str, mistake: FieldError) -> str:
    """``train.yml:3:7``"""
    return source if mistake.line is None else f"{source}:{mistake.line}:{mistake.column or 1}"


def in_words(mistake: FieldError) -> str:
    return f"{mistake.path}: {mistake.message}" if mistake.path else mistake.message


def snippet(line: str, number: int, column: int) -> tuple[Text, Text]:
    """A line of the source, and below it a mark under the word at ``column`` (1-based, in characters)."""
    line = LOGIN.sub(lambda login: "*" * len(login[0]), line)
    start = column - 1
    word = _WORD.match(line, start)
    end = word.end() if word else start + 1
    first = max(0, min(start - LONGEST // 2, len(line) - LONGEST))
    last = first + LONGEST
    shown, before, marked = (
        visible(part.replace("\t", " "))
        for part in (line[first:last].rstrip(), line[first:start], line[start : min(end, last)])
    )
    margin = f"  {number} │ "
    blank = " " * (len(margin) - 2) + "│ "
    mark = " " * cell_len(before) + "^" * max(1, cell_len(marked))
    return Text.assemble((margin, "dim"), shown), Text.assemble((blank, "dim"), (mark, "red"))


def _line(start: str, text: str, style: str = "") -> None:
    """On a terminal it is broken between words; elsewhere never."""
    line = Text.assemble((start, style or "bold"), visible(text))
    say().print(line, soft_wrap=not say().is_terminal)


def _hint(text: str) -> None:
    hint = Text(visible(text), "dim")
    if say().is_terminal:
        say().print(Padding.indent(hint, 2))
    else:
        say().print(Text("  ") + hint, soft_wrap=True)
