"""Published configurations and recorded verdicts of the reference system."""

from __future__ import annotations

import json
import re
import statistics
import time
from collections import Counter
from typing import Any

import pytest

from perdure import spec
from perdure.model.errors import InvalidConfiguration
from perdure.spec.reading import read
from tests.spec.differences import VERDICTS
from tests.spec.support import fixtures


def test_every_published_configuration_is_read() -> None:
    folder = fixtures() / "configs"
    lines = (folder / "INDEX.tsv").read_text().splitlines()[1:]
    counts: Counter[str] = Counter()
    failures: list[str] = []
    for name, _, kind in (line.split("\t") for line in lines):
        try:
            spec.parse(spec.load_yaml((folder / name).read_bytes(), name), submitted=True)
        except InvalidConfiguration as error:
            failures.append(f"{name}: {error}")
        counts[kind] += 1
    assert failures == []
    assert counts["task"] == 59
    assert counts.total() == 171


def test_every_recorded_verdict_is_ours_but_for_the_listed_ones() -> None:
    wrong: list[str] = []
    needed: set[str] = set()
    for probe in map(json.loads, (fixtures() / "probes.jsonl").read_text().splitlines()):
        ends = [end for end in VERDICTS if probe["config"].endswith(end)]
        if _verdict_is_theirs(probe):
            continue
        needed.update(ends)
        wrong += [] if ends else [probe["config"]]
    assert wrong == []
    assert needed == VERDICTS.keys()


def _verdict_is_theirs(probe: dict[str, Any]) -> bool:
    """What dstack refuses when it is submitted may be refused here when it is read."""
    if probe["verdict"] == "accept":
        return _accepted(probe["config"], submitted=True)
    return not _accepted(probe["config"], submitted=probe["stage"] == "submit")


def _accepted(text: str, *, submitted: bool) -> bool:
    try:
        document = spec.load_yaml(text)
        return not read(document).invalid if submitted else bool(spec.parse(document))
    except InvalidConfiguration as error:
        for one in error.errors:
            assert one.line or not one.path, text
            assert one.hint or re.search("(is|are) (wanted|allowed)$", one.message), text
        return False


@pytest.mark.parametrize("kind", ["task", "service"])
def test_three_hundred_lines_are_read_in_twenty_milliseconds(kind: str) -> None:
    variables = "".join(f"  - NAME_{n}=value-{n}\n" for n in range(140))
    commands = "".join(f"  - python step.py --number {n}\n" for n in range(140))
    extra = "port: 80\n" if kind == "service" else "nodes: 2\nports: [80, 8080]\n"
    text = (
        f"type: {kind}\n{extra}env:\n{variables}commands:\n{commands}"
        "resources:\n  gpu: A100:40GB:2\n  cpu: 4..8\n  memory: 16GB..\nretry:\n  on_events: [error]\n"
        "  duration: 1h\nmax_duration: 2h\nidle_duration: off\ntags: {a: b}\nvolumes: ['/a:/b']\n"
    )
    assert len(text.splitlines()) >= 290
    times: list[float] = []
    for _ in range(9):
        started = time.process_time()
        spec.parse_run(spec.load_yaml(text))
        times.append(time.process_time() - started)
    assert statistics.median(times) < 0.02
