"""What is read, and worth a word."""

from __future__ import annotations

import pytest

from perdure import spec
from perdure.spec.reading import read
from tests.spec.support import task


def test_a_local_port_that_differs_is_warned_about() -> None:
    run = spec.parse_run(task("ports: ['9100:8000', 80, '*:81']"))
    (warning,) = spec.warnings(run)
    assert "local port 9100 is not forwarded yet" in warning
    assert "http://ADDRESS:8000" in warning


def test_fields_without_effect_are_warned_about() -> None:
    run = spec.parse_run(task("home_dir: /home/x\nsetup: [a]"))
    assert spec.warnings(run) == ("home_dir has no effect", "setup has no effect")
    assert spec.warnings(spec.parse_run(task(""))) == ()


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("resources: {gpu: tpu-v3-8}", "resources.gpu"),
        ("resources: {gpu: 'google:A100,tpu-v3-8:2'}", "resources.gpu"),
        ("resources: {gpu: {name: [tpu-v3-8]}}", "resources.gpu"),
        (
            "groups: [{commands: [x]}, {commands: [x], resources: {gpu: {name: 'A100, tpu-v3-8'}}}]",
            "groups[1].resources.gpu",
        ),
    ],
)
def test_old_names_of_tpus_are_warned_about(text: str, path: str) -> None:
    (warning,) = read(task(text) if "groups" not in text else spec.load_yaml(f"type: task\n{text}")).warnings
    assert warning == f"{path}: 'tpu-v3-8' is an old name: write 'v3-8'"
