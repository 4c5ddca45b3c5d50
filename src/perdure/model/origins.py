"""Where a value in force comes from: nothing that a run goes by is hidden."""

from __future__ import annotations

from typing import Any, Literal

from perdure.model.base import Message

Layer = Literal["flag", "configuration", "profile", "fleet", "default"]
"""In this order: the first that says something about a value decides it."""


class Origin(Message):
    """The layer that decided, and where in it."""

    layer: Layer = "default"
    name: str = ""
    """The flag (``--gpu``), the profile's or the fleet's name."""

    path: str = ""
    """Where in that layer it is written: ``resources.gpu``; empty for a default."""

    def words(self) -> str:
        """``--gpu``, ``configuration``, ``profile large``, ``fleet gpus``, ``default``."""
        if self.layer == "flag":
            return self.name
        return f"{self.layer} {self.name}" if self.name else self.layer


class EffectiveValue(Message):
    """One value in force, as a plan shows it."""

    label: str
    """For people: ``max duration``."""

    value: str
    """In words: ``2h``, ``off``, ``cpu=4.. mem=16GB..``."""

    path: str = ""
    """The field that sets it: ``max_duration``; empty for what no field sets, such as the project."""

    origin: Origin = Origin()
    data: Any = None
    """The value itself, as JSON, where a program would want it; durations in seconds, null is off."""
