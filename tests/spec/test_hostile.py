"""Whatever a file holds: it is read or refused in a second, in 200 MB, in a few lines, and without a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from perdure import spec
from perdure.model.errors import InvalidConfiguration
from tests.spec import hostile

LONG = 100_000
TASK = "type: task\ncommands: [x]\n"
UNITS = [
    *(
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
    ),
    *(
        "1..",
        "1:",
        "\\",
        "~",
        "#",
        "*",
        "0 ",
        "l",
        "a/",
        "@",
        "a.b",
        "%",
        '"',
        "1e",
        "://",
        "a=",
        "GB",
        "${{ a.b }}",
    ),
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
    "max_price: '{}x'",
    "name: '{}'",
    "user: '{}'",
    "shell: '/{}'",
    "entrypoint: '{}'",
    "schedule: {{cron: '{} * * * *'}}",
    "schedule: {{cron: '{}'}}",
    "schedule: {{cron: '* * * * *', timezone: '{}'}}",
    "tags: {{a: '{}'}}",
    "tags: {{'{}': a}}",
    "fleets: ['{}']",
    "retry: '{}'",
    "retry: {{on_exit_codes: ['{}']}}",
    "notify: [{{url: 'https://{}'}}]",
    "spot_policy: '{}'",
    "deadline: '2026-{}'",
    "'{}': 1",
]


@pytest.mark.parametrize("field", FIELDS)
def test_a_long_value_takes_no_long_time(field: str) -> None:
    for unit in UNITS:
        text = TASK + field.format(unit.replace("'", "''") * (LONG // len(unit)))
        started = time.process_time()
        try:
            spec.parse(spec.load_yaml(text))
        except InvalidConfiguration as error:
            assert len(str(error)) < 3000
        assert time.process_time() - started < hostile.SECONDS, unit


@pytest.mark.parametrize("family", hostile.FAMILIES)
def test_no_file_is_too_much(family: str) -> None:
    command = [sys.executable, "-m", "tests.spec.hostile", family]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout)["faults"] == []
