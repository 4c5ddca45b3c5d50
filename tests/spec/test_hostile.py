"""Long and strange values are refused, or read, without taking long: no grammar backtracks."""

from __future__ import annotations

import time

import pytest

from perdure import spec
from perdure.model.errors import InvalidConfiguration

LONG = 100_000
TASK = "type: task\ncommands: [x]\n"
UNITS = [
    "1",
    "a",
    ":",
    "1 .",
    "1 ",
    ".",
    "a@",
    "a:1",
    ":1",
    "a,",
    "1,",
    "/",
    "..",
    "$${{",
    "${{ a }",
    "é",
    "-",
    "=",
    "_",
]
FIELDS = [
    "resources: {{gpu: '{}'}}",
    "resources: {{gpu: '{}G'}}",
    "resources: {{cpu: '{}'}}",
    "resources: {{memory: '{}'}}",
    "resources: {{disk: '{}x'}}",
    "ports: ['{}']",
    "env: ['{}']",
    "env: {{A: '{}'}}",
    "volumes: ['{}']",
    "files: ['{}']",
    "repos: ['{}']",
    "repos: ['https://{}']",
    "max_duration: '{}'",
    "idle_duration: '1{}s'",
    "nodes: '{}'",
    "nodes: {}1",
    "priority: '{}'",
    "name: '{}'",
    "user: '{}'",
    "shell: '/{}'",
    "entrypoint: '{}'",
    "schedule: {{cron: '{} * * * *'}}",
    "tags: {{a: '{}'}}",
    "fleets: ['{}']",
    "retry: '{}'",
    "'{}': 1",
]


@pytest.mark.parametrize("field", FIELDS)
def test_a_long_value_takes_no_long_time(field: str) -> None:
    for unit in UNITS:
        text = TASK + field.format(unit * (LONG // len(unit)))
        started = time.process_time()
        try:
            spec.parse(spec.load_yaml(text))
        except InvalidConfiguration as error:
            assert len(str(error)) < 3000
        assert time.process_time() - started < 1, unit
