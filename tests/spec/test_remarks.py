"""What is read, and worth a word."""

from __future__ import annotations

import pytest

from perdure import spec
from perdure.spec.reading import read
from perdure.spec.remarks import named_twice
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


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("resources: {gpu: 4090}", "resources.gpu: 4090 is a number of GPUs: for one by its name, write RTX4090"),
        ("resources: {gpu: A100 x 2}", "resources.gpu: 'A100 x 2' is taken for a name: write A100:2"),
        ("resources: {gpu: A100-80GB}", "resources.gpu: 'A100-80GB' is taken for a name: write A100:80GB"),
        (
            "resources: {gpu: A1000}",
            "resources.gpu: 'A1000' is no GPU that is known here: see that it is spelt right",
        ),
        (
            "resources: {memory: 16384}",
            "resources.memory: 16384 is 16384GB: write 16384MB if you mean megabytes",
        ),
        ("max_duration: 30", "max_duration: 30 is 30 seconds: write 30m for minutes, 30h for hours, or 30s"),
        ("deadline: '5'", "deadline: 5 is 5 seconds: write 5m for minutes, 5h for hours, or 5s"),
    ],
)
def test_what_surely_means_something_else_is_warned_about(text: str, warning: str) -> None:
    assert read(task(text)).warnings == (warning,)


@pytest.mark.parametrize(
    "text",
    [
        "resources: {gpu: 'A100:80GB:2'}",
        "resources: {gpu: 'nvidia:24GB..:1..4'}",
        "resources: {gpu: 'H100,RTX4090,MI300X,v5p-8,L40S,GH200'}",
        "resources: {gpu: 8, memory: 64, shm_size: 16}",
        "resources: {gpu: {name: [A100], count: 2}, memory: 1.5TB}",
        "max_duration: 30s",
        "max_duration: 3600",
        "idle_duration: 0",
        "max_duration: off",
    ],
)
def test_what_means_what_it_seems_to_is_not_warned_about(text: str) -> None:
    assert read(task(text)).warnings == ()


def test_two_profiles_of_one_name_are_warned_about() -> None:
    profiles = spec.parse_profiles(spec.load_yaml("profiles: [{name: a}, {name: b}, {name: a}]"))
    assert list(named_twice(profiles)) == ["2 profiles have the name 'a': only the first of them is ever used"]
