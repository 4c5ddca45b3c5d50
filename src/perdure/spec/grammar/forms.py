"""How a value is written, in JSON Schema: for editors, and for the reference page.

A grammar that turns short forms into a value says beside itself what they look like: its ``title`` is what kind of
value it is, in words. One schema lists all types of a scalar and one pattern for its texts, instead of one
alternative each: an editor then says what is wrong with a value, not which of seven alternatives it misses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

from pydantic import GetJsonSchemaHandler
from pydantic_core import CoreSchema

Schema: TypeAlias = dict[str, Any]


def any_case(*words: str) -> str:
    """A pattern of these words in capitals and small letters, for a dialect without flags."""
    return "|".join("".join(f"[{c.upper()}{c.lower()}]" if c.isalpha() else c for c in word) for word in words)


ANY = r"[\s\S]"
"""Any character, line breaks too."""

SWITCH_WORDS = any_case("true", "yes", "on", "false", "no", "off")
SHORT_SWITCH_WORDS = f"{SWITCH_WORDS}|[01yntfYNTF]"


def scalar(
    title: str, *types: str, pattern: str | None = None, hint: str | None = None, examples: Sequence[object] = ()
) -> Schema:
    """A value that is not a mapping.

    Args:
        title: what kind of value it is, in words: ``duration or off``.
        types: of JSON.
        pattern: what its texts look like, whole (Python and ECMAScript read it alike).
        hint: what to write, said by an editor where the pattern does not fit.
        examples: offered by an editor.
    """
    schema: Schema = {"title": title, "type": list(types)}
    if pattern is not None:
        schema["pattern"] = f"^({pattern})$"
    if hint is not None:
        schema["patternErrorMessage"] = hint
    return schema | ({"examples": list(examples)} if examples else {})


SWITCH = scalar("true or false", "boolean", "string", pattern=SWITCH_WORDS, hint="write true or false")
"""Where something is switched that has a mapping, too."""


def range_of(one: str) -> str:
    """The pattern of one value, or of a range with an end at least, which may have blanks around its ends."""
    return rf"{one}|\s*({one})\s*\.\.\s*(({one})\s*)?|\s*\.\.\s*({one})\s*"


def ends(one: Schema) -> Schema:
    """A mapping of ``min`` and ``max``, as a range may be written."""
    end = or_null(one)
    return {"type": "object", "properties": {"min": end, "max": end}, "additionalProperties": False}


def one_or_more(item: Schema) -> Schema:
    """A value, or a list of such values."""
    return {
        "title": f"{item['title']}, or a list",
        "anyOf": [item, {"type": "array", "items": item, "minItems": 1}],
    }


def or_null(schema: Schema) -> Schema:
    """Also null."""
    if "type" in schema and not schema.keys() & {"enum", "const", "properties"}:
        given = schema["type"]
        types = cast(list[str], given) if isinstance(given, list) else [cast(str, given)]
        return schema if "null" in types else schema | {"type": [*types, "null"]}
    alternatives = schema.get("anyOf", [schema])
    title = {"title": schema["title"]} if "title" in schema else {}
    return title | {"anyOf": [*alternatives, {"type": "null"}]}


class Short:
    """Marks a mapping, or a union of some, that has short forms, too: its schema begins with them."""

    def __init__(self, *forms: Schema):
        self._forms = forms

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
        inner = handler(core)
        alternatives: list[Schema] = inner.get("oneOf") or inner.get("anyOf") or [inner]
        long_forms = [one for one in alternatives if "$ref" in one or one.get("type") == "array"]
        return {"title": self._forms[0]["title"], "anyOf": [*self._forms, *long_forms]}
