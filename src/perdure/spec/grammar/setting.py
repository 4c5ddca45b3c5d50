"""The one type of whatever can be switched off: unset, off, or a value.

Unset says nothing: the next layer below decides, and at the end the default. Off says that there is to be none, and
so overrides a value in a layer below.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, TypeVar

Value = TypeVar("Value")

OFF: Final = "off"
Off: TypeAlias = Literal["off"]
Setting: TypeAlias = Value | Off | None
"""None is unset."""


def settled(setting: Setting[Value], default: Value | None) -> Value | None:
    """What holds once nothing else is asked: the value, the default of an unset one, or None for off."""
    if setting is None:
        return default
    return None if setting == OFF else setting
