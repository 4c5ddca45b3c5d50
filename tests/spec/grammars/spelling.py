"""One value as YAML, in any style that a person might write it in.

Block or flow, indented by one to four, keys in any order and with any quotes, texts plain, quoted or as a block,
comments, blank lines, anchors and aliases, merge keys, either line ending. None of this may change what is read.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from hypothesis import strategies as st

_PLAIN = re.compile(r"[A-Za-z0-9_./+]([A-Za-z0-9_./:@%+=*-]*[A-Za-z0-9_./@%+=*-])?")
_WORDS = frozenset(("true", "false", "null"))
_LIKE_A_NUMBER = re.compile(r"[0-9.]*")
_BLOCK = re.compile(r"[!-~À-ÿ]([ -~À-ÿ]*[!-~À-ÿ])?")


@st.composite
def yaml_texts(draw: st.DrawFn, value: dict[str, Any], *, loose: bool = False) -> str:
    """The mapping as a document.

    Args:
        loose: also quotes numbers and switches, and leaves quotes away from texts that look like numbers: then not
            the tree is the same, but what a configuration makes of it.
    """
    writer = _Writer(draw, loose)
    lines = writer.mapping(value) if value else [writer.flow(value)]
    start = draw(st.sampled_from(["", "", "---\n", "# a comment\n", "\ufeff"]))
    return (start + "\n".join(lines) + "\n").replace("\n", draw(st.sampled_from(["\n", "\n", "\r\n"])))


class _Node(NamedTuple):
    """What stands behind the name of a value, and the lines below, not yet indented."""

    head: str
    lines: list[str]


class _Writer:
    """Remembers what it has put an anchor on."""

    def __init__(self, draw: st.DrawFn, loose: bool):
        self._draw = draw
        self._loose = loose
        self._anchors: dict[str, str] = {}

    def mapping(self, value: dict[str, Any]) -> list[str]:
        items = self._draw(st.permutations(list(value.items())))
        merged = dict(items[:1] if len(items) > 1 and self._rarely() else [])
        lines = [f"<<: {self.flow(merged)}"] if merged else []
        for name, item in items[len(merged) :]:
            node = self._node(item)
            indent = " " * self._draw(st.integers(0 if isinstance(item, list) and not node.head else 1, 4))
            lines += self._remark()
            lines.append(f"{self._key(name)}:{' ' if node.head else ''}{node.head}")
            lines += [indent + line for line in node.lines]
        return lines

    def flow(self, value: Any) -> str:
        match value:
            case dict():
                items = [f"{self._key(name)}: {self.flow(item)}" for name, item in value.items()]
                return "{" + self._commas(items) + "}"
            case list():
                return "[" + self._commas([self.flow(item) for item in value]) + "]"
            case str():
                return self._draw(st.sampled_from(self._texts(value)))
            case None:
                return self._draw(st.sampled_from(["null", "~", "Null"]))
            case bool():
                word = str(value)
                plain = [word.lower(), word, word.upper()]
                other = [f'"{plain[0]}"', "yes" if value else "no", "on" if value else "off"]
                return self._draw(st.sampled_from(plain + other if self._loose else plain))
            case _:
                return self._draw(st.sampled_from(["{}", "'{}'", '"{}"'] if self._loose else ["{}"])).format(value)

    def _node(self, value: Any) -> _Node:
        anchor = ""
        if value and self._rarely():
            known = json.dumps(value, sort_keys=True)
            if known in self._anchors:
                return _Node(f"*{self._anchors[known]}", [])
            self._anchors[known] = f"a{len(self._anchors)}"
            anchor = f"&{self._anchors[known]} "
        if value and isinstance(value, dict | list) and not self._rarely():
            return _Node(anchor.strip(), self.mapping(value) if isinstance(value, dict) else self._sequence(value))
        if isinstance(value, str) and _BLOCK.fullmatch(value) and self._rarely():
            return _Node(anchor + self._draw(st.sampled_from(["|-", ">-"])), [value])
        comment = "  # why: [not" if self._rarely() else ""
        return _Node(anchor + self.flow(value) + comment, [])

    def _sequence(self, value: list[Any]) -> list[str]:
        lines: list[str] = []
        for item in value:
            node = self._node(item)
            head, *rest = [node.head, *node.lines] if node.head else node.lines
            lines += [*self._remark(), f"- {head}", *(f"  {line}" for line in rest)]
        return lines

    def _texts(self, value: str) -> list[str]:
        single = "'" + value.replace("'", "''") + "'"
        quoted = [single, json.dumps(value), json.dumps(value, ensure_ascii=False)]
        plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS
        return [value, *quoted] if plain and (self._loose or not _LIKE_A_NUMBER.fullmatch(value)) else quoted

    def _key(self, name: str) -> str:
        quoted = [f"'{name}'", json.dumps(name)]
        return self._draw(st.sampled_from([name, name, *quoted] if _PLAIN.fullmatch(name) else quoted))

    def _commas(self, items: list[str]) -> str:
        return self._draw(st.sampled_from([", ", " , "])).join(items) + ("," if items and self._rarely() else "")

    def _remark(self) -> list[str]:
        return self._draw(st.sampled_from([["# it's: a remark"], [""]])) if self._rarely() else []

    def _rarely(self) -> bool:
        return self._draw(st.integers(0, 5)) == 5
