"""What is wrong with a text that is not YAML, in words of the one who wrote it, at the line that must be mended.

The parser says where it could go on no longer and what it had hoped for there; the fault is often a line above: a
missing space after a ``:`` makes a text of a key, and only the next key is one too many.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from yaml import MarkedYAMLError

_SHOWN = 60
"""Characters of a text that are written out in quotes; a longer one is only named."""

_ODD_SPACE = re.compile("[\xa0\u1680\u2000-\u200b\u202f\u205f\u3000\ufeff]")
"""Looks like a space, and is none to YAML: they come with text that is copied from a page."""

_KEY = re.compile(r"[\w./-]+(?=:)")
_UNSPACED = re.compile(r"-(?=[^ \t\r\n-])|[\w-]{1,60}:(?=[^ \t\r\n/:])")
_VALUE = re.compile(r"\s*(?:- +)*(?:[\w./-]+: +)?")
"""What stands before the value of a line: its indentation, the marks of items, a key."""

_ITEM = re.compile(r"\s*- +(?!\w+=|[\w./-]+: )")
_QUOTED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"\\]|\\.)*\"""")
_CLOSING = {"[": "]", "{": "}"}


class Fault(NamedTuple):
    """What cannot be read: line and column are 1-based."""

    message: str
    line: int
    column: int
    hint: str | None


def fault(error: MarkedYAMLError, text: str) -> Fault | None:
    """What the parser found, in one sentence; None if it does not say where."""
    mark = error.problem_mark or error.context_mark
    if mark is None:
        return None
    context = error.context_mark or mark
    begun = (context.line, context.column) if (context.line, context.column) <= (mark.line, mark.column) else None
    found = _Reader(text.splitlines(), mark.line, mark.column, begun).explain(error.problem or error.context or "")
    return found._replace(line=found.line + 1, column=found.column + 1)


def missing_space(text: str) -> str | None:
    """The hint for a text that was meant as an item or a key: ``-echo``, ``type:task``."""
    if found := _UNSPACED.match(text):
        return f"write a space after `{found[0]}`"
    return None


def odd_indentation(line: str) -> int | None:
    """Where it is indented with something that only looks like a space, from 0."""
    found = _ODD_SPACE.search(line[: len(line) - len(line.lstrip(" \xa0\u2000\u2003\u200b\u202f\u3000\ufeff"))])
    return found.start() if found else None


ODD_INDENTATION = ("is indented with a no-break space", "delete it, and type plain spaces")


class _Reader:
    """The lines around a place in the text; lines and columns are counted from 0 here."""

    def __init__(self, lines: list[str], line: int, column: int, begun: tuple[int, int] | None):
        self._lines = lines
        self._line = line
        self._column = column
        self._begun = begun or (line, column)
        """Where what the parser was reading begins."""

    def explain(self, problem: str) -> Fault:
        return (
            self._spaces()
            or self._more_after_the_end()
            or self._by_problem(problem)
            or self._here(
                f"is not valid YAML: {problem}"[:200],
                "look at the indentation, the quotes and the brackets of this line and the one above",
            )
        )

    def _by_problem(self, problem: str) -> Fault | None:
        if "mapping values" in problem:
            return self._key_in_a_text()
        if "expected ':'" in problem:
            return self._no_key(self._begun[0])
        if "alphabetic or numeric" in problem or "undefined alias" in problem:
            return self._odd_beginning(*self._begun)
        if "start any token" in problem or "node content" in problem:
            return self._odd_beginning(self._line, self._column)
        if re.search("comment or (a )?line break", problem):
            return self._odd_beginning(*self._begun)
        if "sequence entries are not allowed" in problem:
            return self._here("has an item behind a key", "write each item in a line of its own, after `- `")
        if "expected ','" in problem:
            return self._open_bracket()
        if "end of stream" in problem and self._text(self._begun[0])[self._begun[1] :][:1] in ("'", '"'):
            return Fault("has a quote that is not closed", *self._begun, "end it with the quote it begins with")
        if "escape character" in problem:
            return self._here(
                f"has {self._text(self._line)[self._column :][:2]} between double quotes",
                "write \\\\ for a backslash, or put the text into single quotes",
            )
        if re.search(r"expected ('-'|key|<document start>|<block end>)", problem):
            return self._out_of_line()
        return None

    def _here(self, message: str, hint: str | None) -> Fault:
        return Fault(message, self._line, self._column, hint)

    def _text(self, line: int) -> str:
        return self._lines[line] if 0 <= line < len(self._lines) else ""

    def _above(self, line: int) -> int | None:
        """The nearest line above with something in it."""
        for above in range(line - 1, -1, -1):
            if self._lines[above].strip() and not self._lines[above].lstrip().startswith("#"):
                return above
        return None

    def _spaces(self) -> Fault | None:
        """A tab, or what only looks like a space, before the text of a line."""
        for line in dict.fromkeys((self._line, self._begun[0])):
            text = self._text(line)
            indentation = text[: _indent(text)]
            if (column := indentation.find("\t")) >= 0:
                return Fault("is indented with a tab", line, column, "YAML is indented with spaces")
            if (odd := odd_indentation(text)) is not None:
                return Fault(ODD_INDENTATION[0], line, odd, ODD_INDENTATION[1])
        return None

    def _more_after_the_end(self) -> Fault | None:
        """``'it's'``, ``[ -f x ] && echo y``: quotes or brackets that end before the text does."""
        text = self._text(self._line)
        start = _value_at(text)
        opening = text[start : start + 1]
        if opening in ("'", '"'):
            found = _QUOTED.match(text, start)
            end = found.end() if found else 0
        elif opening in _CLOSING:
            end = text.rfind(_CLOSING[opening], start, self._column) + 1
        else:
            return None
        begun_line, begun = self._begun
        stopped = begun if begun_line == self._line and begun > start else self._column
        if not end or end > stopped or text[end:stopped].strip() or not text[end:].strip():
            return None
        if opening in _CLOSING:
            message = f"begins with {opening}, and goes on after the {_CLOSING[opening]}"
            return Fault(message, self._line, start, _quote(text))
        if text[end : end + 1] == " ":
            return Fault("goes on after its closing quote", self._line, end, _quote(text))
        double = "write '' for ' inside single quotes" if opening == "'" else 'write \\" for " inside double quotes'
        return Fault("has a quote inside quotes", self._line, end - 1, double)

    def _key_in_a_text(self) -> Fault | None:
        """The ``:`` of a second key: in one line with the first, or below a line that was to be one itself."""
        text = self._text(self._line)
        above = self._above(self._line)
        indent = _indent(text)
        key = _KEY.match(text, indent)
        if key is None or key.end() != self._column or above is None:
            return self._here("has a `: ` inside a text", _quote(text))
        other = self._text(above)
        if _UNSPACED.match(other, _mark_end(other)) or not re.search(r":(\s|$)|^\s*-\s", other):
            return self._no_key(above)
        if indent > _indent(other):
            message = f"is indented too far: it would go on with the text of line {above + 1}"
            hint = f"begin it in column {_indent(other) + 1}, like line {above + 1}"
            if other.lstrip().startswith("- "):
                hint = "a text with `: ` in it needs quotes"
            return Fault(message, self._line, indent, hint)
        return None

    def _no_key(self, line: int) -> Fault:
        """A line that is no ``key: value`` and no ``- item``, and was to be one."""
        text = self._text(line)
        start = _mark_end(text)
        if found := _UNSPACED.match(text, start):
            odd = _ODD_SPACE.match(text, found.end())
            message = f"has a no-break space after `{found[0]}`" if odd else f"has no space after `{found[0]}`"
            return Fault(message, line, found.end(), f"write `{found[0]} `, with a plain space")
        return Fault(
            "has no `: `", line, start, "write `key: value`; or indent it, if it belongs to the text above"
        )

    def _odd_beginning(self, line: int, column: int) -> Fault:
        text = self._text(line)
        if text[column : column + 1] == "\t":
            return Fault("has a tab where a space is wanted", line, column, "YAML is written with spaces")
        if text[column : column + 1] in ("]", "}") and not text[:column].strip():
            return Fault(f"has a {text[column]} that closes nothing", line, column, "leave it out")
        message = f"begins with {text[column : column + 1]}, which is a mark of YAML"
        return Fault(message, line, column, _quote(text))

    def _open_bracket(self) -> Fault:
        line, column = self._begun
        opening = self._text(line)[column : column + 1]
        if self._line != line and (self._line >= len(self._lines) or _KEY.match(self._text(self._line).lstrip())):
            hint = f"write {_CLOSING.get(opening, '')} at its end; or quotes around it, if it is a text"
            return Fault(f"has a {opening} that is not closed", line, column, hint)
        return self._here("has no , between two items", f"they are within the {opening} of line {line + 1}")

    def _out_of_line(self) -> Fault | None:
        """A line that is neither the next item or key of something above it nor a part of its text."""
        text = self._text(self._line)
        indent = _indent(text)
        if indent != self._column:
            return None
        if text[indent : indent + 1] in ("]", "}"):
            return self._odd_beginning(self._line, indent)
        columns = self._columns()
        if indent not in columns:
            fit = " or ".join(map(str, columns[:3]))
            return self._here(
                f"is indented by {indent} space{'' if indent == 1 else 's'}, where {fit} would fit",
                "items of one list, and keys of one mapping, begin in the same column",
            )
        return self._here(
            "mixes the items of a list with the keys of a mapping",
            "write all of them with `- `, or none; or indent it like what it belongs to",
        )

    def _columns(self) -> list[int]:
        """Where the things that are open above begin, from the inside out."""
        columns: list[int] = []
        for line in range(self._line - 1, -1, -1):
            text = self._lines[line]
            if text.strip() and not text.lstrip().startswith("#") and _indent(text) < (columns or [len(text)])[-1]:
                columns.append(_indent(text))
        return columns


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _mark_end(text: str) -> int:
    """Where the text of a line begins, after its indentation and the marks of items."""
    found = re.match(r"\s*(?:- +)*", text)
    return found.end() if found else 0


def _value_at(text: str) -> int:
    found = _VALUE.match(text)
    return found.end() if found else 0


def _quote(text: str) -> str:
    """The hint that shows an item in quotes, unless it may be a variable: what is secret is in no message."""
    value = text[_value_at(text) :].strip()
    if 0 < len(value) <= _SHOWN and _ITEM.match(text):
        doubled = value.replace("'", "''")
        return f"put the whole text into quotes: '{doubled}'"
    return "put the whole text into quotes"
