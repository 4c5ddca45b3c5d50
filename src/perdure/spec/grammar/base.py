"""The simplest values, and how a value says what is wrong with it.

A grammar is a function from whatever JSON holds to a value, or to one clear sentence. The sentence is a predicate
of the field (``is not a duration: '2H'``); the hint says what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sized
from typing import Annotated, Any, TypeGuard, TypeVar, cast

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from perdure.spec.grammar.forms import scalar

Items = TypeVar("Items", bound=Sized)

_WHOLE = re.compile(r"[+-]?[0-9][0-9_]{0,19}")
_NUMBER = re.compile(r"[+-]?([0-9][0-9_]{0,19}(\.[0-9]{0,20})?|\.[0-9]{1,20})([eE][+-]?[0-9]{1,2})?")
_LARGEST = 10**20
_SURROGATE = re.compile("[\ud800-\udfff]")
LOGIN = re.compile(r"(?<=://)[^/\s]*@")
"""What stands before the host in a URL: people write passwords and tokens there."""

SWITCHES = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_SHORT_SWITCHES = {"1": True, "y": True, "t": True, "0": False, "n": False, "f": False}


def wrong(message: str, hint: str | None = None) -> PydanticCustomError:
    """What is wrong with a value. Raise it from a validator."""
    return PydanticCustomError("perdure", "{text}", {"text": message, "hint": hint})


def without_login(word: str) -> str:
    """The text without the passwords in its URLs."""
    return LOGIN.sub("…@", word) if "://" in word else word


def by_form(form: Callable[[object], str | None], message: str, hint: str) -> Discriminator:
    """Which of several forms a value has, by its tag; None: it has none, and that is what is wrong with it.

    (A discriminator must be hashable, and with a context it is not: so the hint is a second line of the message.)
    """
    return Discriminator(form, custom_error_type="perdure", custom_error_message=f"{message}\n{hint}")


def told(value: object) -> str:
    """A value in a message: short, never a whole structure, and never the password in a URL."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            word = without_login(value)
            return repr(word if len(word) <= 60 else word[:57] + "...")
        case int() | float():
            return str(value)[:40] if not isinstance(value, int) or abs(value) < 10**40 else "a huge number"
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case _:
            return f"a {type(value).__name__}"


def is_mapping(value: object) -> TypeGuard[dict[str, object]]:
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[object] | tuple[object, ...]]:
    return isinstance(value, list | tuple)


def discriminator(value: object, field: str, tags: Mapping[str, str]) -> str | None:
    """The tag of the form that a mapping, or a model made from one, says it has in ``field``."""
    found = value.get(field) if is_mapping(value) else getattr(value, field, None)
    return tags.get(found) if isinstance(found, str) else None


class Written(BaseModel):
    """A mapping that a user writes: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    @model_validator(mode="before")
    @classmethod
    def _remember_known_keys(cls, value: object, info: ValidationInfo) -> object:
        """Leaves behind, for error messages, which keys this mapping might have had."""
        known = cast(dict[int, Any] | None, info.context)
        if known is not None and isinstance(value, dict):
            known[id(cast(object, value))] = cls
        return cast(object, value)


def split_by_yaml(value: object) -> str | None:
    """The text that YAML took for a mapping, because of a blank after a colon in it: ``echo key: value``."""
    if not is_mapping(value) or len(value) != 1:
        return None
    ((key, rest),) = value.items()
    if rest is None or is_list(rest) or is_mapping(rest):
        return None
    return f"{key}: {rest if isinstance(rest, str) else told(rest)}"


def joined(value: object, fields: Collection[str]) -> object:
    """The value, if it is not a short form such as ``80:90`` that became a mapping by a blank after its colon.

    Args:
        fields: of the long form; a key that begins like one of them is that one, misspelt.
    """
    if not (said := split_by_yaml(value)):
        return value
    key, _, rest = said.partition(": ")
    if "_" in key or any(key[:2] == field[:2] for field in fields):
        return value
    raise wrong("is a mapping, because of the blank after its colon", f"write {told(f'{key}:{rest}')[1:-1]}")


def unprintable(value: str) -> str | None:
    """What in it neither a process nor a database can be given, in words."""
    if "\0" in value:
        return "a NUL character"
    return None if value.isascii() or not _SURROGATE.search(value) else "half of a character (a lone surrogate)"


def text(value: object) -> str:
    """Numbers are taken for the text they are; true, false and null are not text."""
    if isinstance(value, str):
        if flaw := unprintable(value):
            raise wrong(f"has {flaw} in it", "leave it out")
        return value
    if isinstance(value, bool):
        word = told(value)
        raise wrong(f"is {word}, where a text is wanted", f'quote it if you mean the word: "{word}"')
    if isinstance(value, int | float):
        return digits(value)
    if split_by_yaml(value):
        raise wrong("is a mapping, where a text is wanted", "put the text into quotes")
    raise wrong(f"is {told(value)}, where a text is wanted")


def digits(value: float) -> str:
    """A number where a text is wanted: the text it is."""
    if isinstance(value, int) and abs(value) >= 10**40:
        raise wrong("is a huge number, where a text is wanted", "quote it")
    return str(value)


def whole_text(value: str) -> int | None:
    """The integer that a text spells, if it is one: ``8``, ``+8``, ``1_000``, ``0123`` (which is 123)."""
    return int(value.replace("_", "")) if _WHOLE.fullmatch(value) else None


def whole(value: object) -> int:
    """An integer, also as text."""
    if isinstance(value, str) and (spelt := whole_text(value)) is not None:
        return spelt
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST:
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    raise wrong(f"is {told(value)}, where a whole number is wanted")


def number(value: object) -> float:
    """A number, also as text: ``2``, ``.5``, ``1_000``, ``1e3``."""
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        value = float(value.replace("_", ""))
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST:
        return float(value)
    raise wrong(f"is {told(value)}, where a number is wanted")


def switch(value: object) -> bool:
    """true or false, also as the words yes, no, on, off, and by their first letters."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and (meant := (SWITCHES | _SHORT_SWITCHES).get(value.lower())) is not None:
        return meant
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    raise wrong(f"is {told(value)}, where true or false is wanted", "write true or false")


def not_empty(value: Items) -> Items:
    """Of a list whose items are right."""
    if not value:
        raise wrong("is empty: at least one item is wanted", "leave the field out if there is none")
    return value


TEXT_SCHEMA = scalar("text", "string", "number")

Text = Annotated[str, BeforeValidator(text), WithJsonSchema(TEXT_SCHEMA)]
Whole = Annotated[int, BeforeValidator(whole)]
Number = Annotated[float, BeforeValidator(number)]
Switch = Annotated[bool, BeforeValidator(switch)]
