"""Published configurations mean here what they mean in the reference system, in its own parse form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from perdure import spec
from tests.spec.support import fixtures

OURS_ONLY = {
    "stop_grace": "ours",
    **dict.fromkeys(
        (
            "max_attempts",
            "backoff",
            "on_exit_codes",
            "scope",
            "timezone",
            "max_cost",
            "deadline",
            "notify",
            "stop_signal",
            "depends_on",
        ),
        "ours",
    ),
    "groups": "kept apart from replicas, under the name that was written",
    "replicas": "of a group: kept apart from count, under the name that was written",
    "target": "left out there when it is not written",
}
THEIRS_ONLY = {"ssh_key": "filled in by its client", "entrypoint": "a development environment has none"}
DEFAULTS: dict[str, Any] = {
    "nodes": 1,
    "https": True,
    "placement": "any",
    "blocks": 1,
    "resources": spec.parse_run({"type": "task", "commands": ["x"]}).resources.model_dump(mode="json"),
}
"""Filled in when it is read here, and later there."""

NO_GPU_SAID = {
    "vendor": None,
    "name": None,
    "count": {"min": 0, "max": None},
    "memory": None,
    "total_memory": None,
    "compute_capability": None,
}


def test_every_published_configuration_means_the_same() -> None:
    folder = fixtures() / "configs"
    differences: list[str] = []
    compared = 0
    for file in sorted(folder.glob("*.yml")):
        ours = spec.parse(spec.load_yaml(file.read_bytes(), file.name)).model_dump(mode="json")
        theirs = json.loads(file.with_suffix(".expected.json").read_text())
        differences += [f"{file.name}: {difference}" for difference in _differences(ours, theirs, "")]
        compared += 1
    assert differences == []
    assert compared == 171


def _differences(ours: Any, theirs: Any, path: str) -> Iterator[str]:
    key = path.rpartition(".")[2].partition("[")[0]
    match ours, theirs:
        case dict(), dict():
            yield from _of_mappings(ours, theirs, path)
        case dict(), str() if key == "hosts":
            if {name: value for name, value in ours.items() if value is not None} != {
                "hostname": theirs,
                "blocks": 1,
            }:
                yield f"{path}: {ours} is not {theirs}"
        case list(), list() if len(ours) == len(theirs):
            for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
                yield from _differences(one, other, f"{path}[{index}]")
        case None, dict() if key == "gpu" and theirs == NO_GPU_SAID:
            pass
        case None, str() if key == "name" and theirs.isdigit():  # a group is called by its number
            pass
        case "off", False if key == "retry":
            pass
        case _, None if key in DEFAULTS and ours == DEFAULTS[key]:
            pass
        case _:
            if ours != theirs:
                yield f"{path}: {ours} is not {theirs}"


def _of_mappings(ours: dict[str, Any], theirs: dict[str, Any], path: str) -> Iterator[str]:
    for key in ours.keys() | theirs.keys():
        where = f"{path}.{key}"
        if key in ours and key in theirs:
            yield from _differences(ours[key], theirs[key], where)
        elif ours.get(key) or theirs.get(key) is not None:
            yield f"{where}: is only on one side, and has a value"
        elif key not in (OURS_ONLY if key in ours else THEIRS_ONLY):
            yield f"{where}: is only on one side"
