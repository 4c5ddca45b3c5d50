"""YAML that means what the writer meant, and where in the text each value stands.

A plain scalar becomes a number only if writing that number gives the same text back. So ``3.10``, ``0123``,
``1_000``, ``80:50`` and ``1e3`` stay text, and the field they are for decides what they mean; ``off``, ``no`` and
``yes`` are words, of which fields that know them make a switch. Quoting therefore never changes a meaning.

The text is read event by event (PyYAML's parser, libyaml where present) into a tree of ours, so that size, depth
and aliases are bounded while reading, and nothing of a hostile document is ever expanded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, cast

import yaml
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from perdure.model.errors import FieldError, InvalidConfiguration
from perdure.spec.syntax import ODD_INDENTATION, fault, missing_space, odd_indentation

MAX_BYTES = 256 * 1024
MAX_DEPTH = 100
MAX_NODES = 20_000
MAX_EXPANDED = 1024 * 1024
"""Characters of all scalars once aliases are written out."""

PROFILES = ("profiles.yml", "profiles.yaml")
"""How files of profiles are called."""

Path: TypeAlias = tuple[str | int, ...]

_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE = frozenset(("true", "True", "TRUE"))
_FALSE = frozenset(("false", "False", "FALSE"))
_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]{0,14})\.[0-9]{1,15}")
_NOT_TEXT = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Place(NamedTuple):
    """1-based line and column."""

    line: int
    column: int


@dataclass(slots=True)
class _Node:
    place: Place
    value: Any
    items: dict[str, tuple[Place, _Node]] | list[_Node] | None = None
    nodes: int = 1
    characters: int = 0
    open: bool = False
    key: tuple[str, Place, bool] | None = None
    """Of a mapping that is being read: the key whose value comes next, and whether it was plain."""

    merged: list[_Node] | None = None


class Lines:
    """Where the values of one document stand."""

    def __init__(self, root: _Node):
        self._root = root

    def at(self, path: Iterable[str | int], *, key: bool = False) -> Place:
        """The place of the value at ``path`` (with ``key``: of its name), or of the nearest thing around it."""
        node, place = self._root, self._root.place
        for step in path:
            if isinstance(node.items, dict) and step in node.items:
                named, node = node.items[step]
                place = named if key else node.place
            elif isinstance(node.items, list) and isinstance(step, int) and 0 <= step < len(node.items):
                node = node.items[step]
                place = node.place
            else:
                break
        return place

    def locate(self, error: FieldError) -> FieldError:
        """The error with its line and column, if it has none: for those that come back from a worker.

        One of a flag or the profile stands elsewhere, and is left as it is.
        """
        if error.line is not None or error.layer != "configuration":
            return error
        place = self.at(split_path(error.path))
        return error.but(line=place.line, column=place.column)


class Document(dict[str, Any]):
    """A configuration as read from a text: its mapping, and where everything in it stands."""

    def __init__(self, mapping: Mapping[str, Any], lines: Lines, source: str):
        super().__init__(mapping)
        self.lines = lines
        self.source = source


def split_path(path: str) -> Path:
    """``a.b[2]`` as ``("a", "b", 2)``."""
    steps = re.findall(r"\[(\d+)\]|([^.\[\]]+)", path)
    return tuple(int(index) if index else name for index, name in steps)


def load_yaml(text: str | bytes, source: str = "configuration") -> Document:
    """Read one configuration.

    Args:
        text: at most 256 KiB, 100 levels and 20,000 values, in UTF-8 if it is bytes.
        source: the file's name, for messages.

    Raises:
        InvalidConfiguration: it cannot be read; one error, with line and column.
    """
    try:
        return _document(text, source)
    except _Unreadable as unreadable:
        raise InvalidConfiguration([unreadable.error], source=source) from None


class _Unreadable(Exception):
    def __init__(self, message: str, place: Place | None = None, hint: str | None = None):
        super().__init__(message)
        line, column = place if place else (None, None)
        self.error = FieldError(path="", message=message, hint=hint, line=line, column=column)


def _document(text: str | bytes, source: str) -> Document:
    text = _checked_text(text)
    try:
        root = _Composer().compose(_events(text))
    except yaml.MarkedYAMLError as error:
        raise _explain(error, text) from None
    except yaml.YAMLError as error:
        raise _Unreadable(f"is not valid YAML: {' '.join(str(error).split())[:200]}") from None
    if root is None or root.value is None:
        raise _Unreadable("is empty", hint=_beginning(source))
    if not isinstance(root.items, dict):
        hint = missing_space(root.value) if isinstance(root.value, str) else None
        raise _Unreadable("must be a mapping", root.place, hint or _beginning(source))
    return Document(cast(dict[str, Any], root.value), Lines(root), source)


def holds_profiles(source: str) -> bool:
    """Whether a file is one of profiles, by its name."""
    return source.replace("\\", "/").rpartition("/")[2] in PROFILES


def _beginning(source: str) -> str:
    if holds_profiles(source):
        return "a file of profiles begins with `profiles:`, and has one in each item: `- name: large`"
    return "a configuration begins with its type, such as `type: task`"


def _events(text: str) -> Iterable[Any]:
    return cast(Any, yaml).parse(text, Loader=_LOADER)


def _checked_text(text: str | bytes) -> str:
    if isinstance(text, bytes):
        if len(text) > MAX_BYTES:
            raise _too_large()
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            before = text[: error.start].decode()
            raise _Unreadable(f"is not UTF-8 text: byte 0x{text[error.start]:02x}", _place_after(before)) from None
    text = text.removeprefix("\ufeff")
    if len(text) > MAX_BYTES or len(text.encode(errors="replace")) > MAX_BYTES:
        raise _too_large()
    if odd := _NOT_TEXT.search(text):
        raise _Unreadable(
            f"holds a character that YAML does not allow: U+{ord(odd[0]):04X}", _place_after(text[: odd.start()])
        )
    return text


def _too_large() -> _Unreadable:
    return _Unreadable("is larger than 256 KiB", hint="put data into files and list them under `files:`")


def _too_deep(place: Place | None) -> _Unreadable:
    return _Unreadable("is nested more than 100 levels deep", place)


def _place_after(text: str) -> Place:
    return Place(text.count("\n") + 1, len(text) - (text.rfind("\n") + 1) + 1)


def _explain(error: yaml.MarkedYAMLError, text: str) -> _Unreadable:
    """Say in one sentence what the parser found."""
    found = fault(error, text)
    place = Place(found.line, found.column) if found else None
    if "nesting depth" in (error.problem or ""):  # libyaml looks ahead, and has a limit of its own
        return _too_deep(place)
    if found is None:
        return _Unreadable(f"is not valid YAML: {' '.join(str(error).split())[:200]}")
    return _Unreadable(found.message, place, found.hint)


class _Composer:
    """Events to a tree, with a stack instead of recursion."""

    def __init__(self) -> None:
        self._stack: list[_Node] = []
        self._anchors: dict[str, _Node] = {}
        self._root: _Node | None = None
        self._documents = 0
        self._nodes = 0

    def compose(self, events: Iterable[Any]) -> _Node | None:
        for event in events:
            self._take(event)
        return self._root

    def _take(self, event: Any) -> None:
        place = Place(event.start_mark.line + 1, event.start_mark.column + 1)
        match event:
            case ScalarEvent() | SequenceStartEvent() | MappingStartEvent():
                self._begin(event, place)
            case AliasEvent():
                self._alias(cast(str, event.anchor), place)
            case SequenceEndEvent() | MappingEndEvent():
                self._end()
            case DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    raise _Unreadable("holds more than one document", place, "one file is one configuration")
            case DocumentEndEvent():
                self._anchors.clear()
            case _:
                pass

    def _begin(self, event: Any, place: Place) -> None:
        if event.tag is not None:
            raise _Unreadable(
                f"has a tag, {str(event.tag)[:60]}: tags are not supported",
                place,
                "leave the tag out; quote what is a text",
            )
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise _Unreadable("holds more than 20,000 values", place)
        if isinstance(event, ScalarEvent):
            self._scalar(event, place)
            return
        if len(self._stack) >= MAX_DEPTH:
            raise _too_deep(place)
        self._refuse_as_key(place)
        is_mapping = isinstance(event, MappingStartEvent)
        node = _Node(place, {} if is_mapping else [], {} if is_mapping else [], open=True)
        if event.anchor:
            self._anchors[event.anchor] = node
        self._stack.append(node)

    def _scalar(self, event: ScalarEvent, place: Place) -> None:
        text = cast(str, event.value)
        plain = bool(event.implicit[0])
        parent = self._stack[-1] if self._stack else None
        if parent is not None and isinstance(parent.items, dict) and parent.key is None:
            self._key(parent, text, place, plain)
            return
        node = _Node(place, _plain_value(text) if plain else text, characters=len(text))
        if event.anchor:
            self._anchors[event.anchor] = node
        self._add(node)

    def _key(self, parent: _Node, text: str, place: Place, plain: bool) -> None:
        items = cast(dict[str, tuple[Place, _Node]], parent.items)
        if plain and odd_indentation(text) is not None:
            raise _Unreadable(ODD_INDENTATION[0], place, ODD_INDENTATION[1])
        if text in items:
            first = items[text][0]
            raise _Unreadable(f"has the key {text[:60]!r} twice", place, f"it is first in line {first.line}")
        parent.key = (text, place, plain)
        parent.characters += len(text)

    def _alias(self, anchor: str, place: Place) -> None:
        node = self._anchors.get(anchor)
        if node is None:
            raise _Unreadable(f"refers to *{anchor[:60]}, which is not defined above", place)
        if node.open:
            raise _Unreadable(f"has *{anchor[:60]} inside the very thing it stands for", place)
        self._refuse_as_key(place)
        self._add(node)

    def _refuse_as_key(self, place: Place) -> None:
        parent = self._stack[-1] if self._stack else None
        if parent is not None and isinstance(parent.items, dict) and parent.key is None:
            raise _Unreadable("has a key that is not a text", place)

    def _end(self) -> None:
        node = self._stack.pop()
        for other in node.merged or ():
            _merge(node, other)
        node.open = False
        self._add(node)

    def _add(self, node: _Node) -> None:
        if not self._stack:
            self._root = node
            return
        parent = self._stack[-1]
        parent.nodes += node.nodes
        parent.characters += node.characters
        if parent.nodes > MAX_NODES:
            raise _Unreadable("holds more than 20,000 values once its aliases are written out", node.place)
        if parent.characters > MAX_EXPANDED:
            raise _Unreadable("is larger than 1 MiB once its aliases are written out", node.place)
        if isinstance(parent.items, list):
            parent.items.append(node)
            parent.value.append(node.value)
        elif isinstance(parent.items, dict) and parent.key is not None:
            name, place, plain = parent.key
            parent.key = None
            if name == "<<" and plain:
                parent.merged = (parent.merged or []) + _merge_sources(node)
            else:
                parent.items[name] = (place, node)
                parent.value[name] = node.value


def _merge_sources(node: _Node) -> list[_Node]:
    sources = node.items if isinstance(node.items, list) else [node]
    for source in sources:
        if not isinstance(source.items, dict):
            raise _Unreadable("has << with something that is not a mapping", source.place)
    return sources


def _merge(node: _Node, other: _Node) -> None:
    """YAML's ``<<``: what the mapping does not say itself, it takes from the other."""
    items = cast(dict[str, tuple[Place, _Node]], node.items)
    for name, entry in cast(dict[str, tuple[Place, _Node]], other.items).items():
        if name not in items:
            items[name] = entry
            node.value[name] = entry[1].value


def _plain_value(text: str) -> Any:
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if _INTEGER.fullmatch(text) and text != "-0":
        return int(text)
    if _DECIMAL.fullmatch(text) and repr(float(text)) == text:
        return float(text)
    return text
