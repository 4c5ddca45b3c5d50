"""Published configurations mean here what they mean in the reference system, in its own parse form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from perdure import spec
from tests.spec.differences import FIELDS, VALUES, VERDICTS
from tests.spec.support import fixtures

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
    differences, _ = _of_configurations()
    assert differences == []


def test_every_recorded_value_means_the_same() -> None:
    differences, _ = _of_probes()
    assert differences == []


def test_every_difference_of_meaning_is_needed() -> None:
    needed = _of_configurations()[1] | _of_probes()[1]
    assert needed == FIELDS.keys() | VALUES.keys()


@cache
def _of_configurations() -> tuple[list[str], set[str]]:
    """What differs though it must not, and the listed differences that there are."""
    differences: list[str] = []
    needed: set[str] = set()
    files = sorted((fixtures() / "configs").glob("*.yml"))
    assert len(files) == 171
    for file in files:
        ours = spec.parse(spec.load_yaml(file.read_bytes(), file.name)).model_dump(mode="json")
        theirs = json.loads(file.with_suffix(".expected.json").read_text())
        differences += [f"{file.name}: {difference}" for difference in _differences(ours, theirs, "", needed)]
    return differences, needed


@cache
def _of_probes() -> tuple[list[str], set[str]]:
    """As of configurations: the one field whose value was recorded."""
    differences: list[str] = []
    needed: set[str] = set()
    for probe in map(json.loads, (fixtures() / "probes.jsonl").read_text().splitlines()):
        config, value = probe["config"], probe["value"]
        if probe["verdict"] != "accept" or value is None or any(config.endswith(end) for end in VERDICTS):
            continue
        ours: Any = spec.parse(spec.load_yaml(config)).model_dump(mode="json")
        for step in probe["field"].split("."):
            ours = ours[step]
        found = list(_differences(ours, value, probe["field"], needed))
        listed = {end for end in VALUES if config.endswith(end)}
        needed |= listed if found else set()
        differences += [f"{config}: {difference}" for difference in found if not listed]
    return differences, needed


def _differences(ours: Any, theirs: Any, path: str, needed: set[str]) -> Iterator[str]:
    key = path.rpartition(".")[2].partition("[")[0]
    match ours, theirs:
        case dict(), dict():
            yield from _of_mappings(ours, theirs, path, needed)
        case dict(), str() if key == "hosts":
            if {name: value for name, value in ours.items() if value is not None} != {
                "hostname": theirs,
                "blocks": 1,
            }:
                yield f"{path}: {ours} is not {theirs}"
        case list(), list() if len(ours) == len(theirs):
            for index, (one, other) in enumerate(zip(ours, theirs, strict=True)):
                yield from _differences(one, other, f"{path}[{index}]", needed)
        case None, dict() if key == "gpu" and theirs == NO_GPU_SAID:
            pass
        case None, str() if key == "name" and theirs.isdigit():  # a group is called by its number
            pass
        case "off", False if key == "retry":
            pass
        case dict(), True if key == "retry" and not any(ours.values()):
            pass
        case "off", -1 if key in ("idle_duration", "auto_cleanup_duration"):
            pass
        case "off", None if key == "inactivity_duration":
            pass
        case _, None if key in DEFAULTS and ours == DEFAULTS[key]:
            pass
        case _:
            if ours != theirs:
                yield f"{path}: {ours} is not {theirs}"


def _of_mappings(ours: dict[str, Any], theirs: dict[str, Any], path: str, needed: set[str]) -> Iterator[str]:
    for key in ours.keys() | theirs.keys():
        where = f"{path}.{key}"
        if key in ours and key in theirs:
            yield from _differences(ours[key], theirs[key], where, needed)
        elif ours.get(key) or theirs.get(key) is not None:
            yield f"{where}: is only on one side, and has a value"
        elif key in FIELDS:
            needed.add(key)
        else:
            yield f"{where}: is only on one side"
