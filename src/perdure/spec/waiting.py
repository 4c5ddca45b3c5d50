"""Which fields this version does not have yet: ``refusals`` is asked about configurations that have one of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from perdure.model.errors import InvalidConfiguration
from perdure.spec.parsing import parse
from perdure.spec.refusals import not_yet

KINDS: dict[str, tuple[Mapping[str, object], ...]] = {
    "task": ({"type": "task", "commands": ["x"]}, {"type": "task", "image": "x"}),
    "service": ({"type": "service", "port": 80, "image": "x"},),
    "dev-environment": ({"type": "dev-environment"},),
    "fleet": ({"type": "fleet", "nodes": 1}, {"type": "fleet"}),
    "volume": ({"type": "volume", "backend": "aws", "region": "x", "size": 1},),
    "gateway": ({"type": "gateway", "backend": "aws", "region": "x"},),
}
"""The least that is right of each kind: with a field more, it is asked whether that can be had yet."""


@dataclass(frozen=True)
class Asked:
    """Where fields are put, to hear whether this version has them."""

    kind: str
    inside: str = ""
    """Of the configuration; empty: they are its own."""

    least: Mapping[str, object] = field(default_factory=dict[str, object])
    """What a mapping in that field needs."""

    is_list: bool = False

    def whether_waits(self, name: str, example: object) -> bool:
        if not self.inside:
            return waits(self.kind, {name: example}, name)
        part: object = {**self.least, name: example}
        return waits(self.kind, {self.inside: [part] if self.is_list else part}, self.inside, name)


def waits(kind: str, more: Mapping[str, object], *path: str) -> bool:
    """Whether this version refuses what stands there in a configuration: all of it, or the path's end."""
    for least in KINDS[kind]:
        try:
            configuration = parse({**least, **more})
        except InvalidConfiguration:
            continue
        named = [re.sub(r"\[\d+\]", "", error.path) for error in not_yet(configuration)]
        return ".".join(path) in named or path[0] in named
    return False
