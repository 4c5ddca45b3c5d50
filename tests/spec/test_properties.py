"""Whatever is written, in any form, is read or refused: never a traceback, and never two meanings."""

from __future__ import annotations

import json
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure import spec
from perdure.model.errors import InvalidConfiguration
from perdure.spec.grammar import durations, hardware, ranges
from perdure.spec.models.run import Task
from tests.spec.support import mistakes, resolve

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
SHORT = st.sampled_from(
    [
        "task",
        "8",
        "2..8",
        "off",
        "A100:2",
        "16GB",
        "/a:/b",
        "80:80",
        "A=1",
        "${{ run.args }}",
        "${{",
        "$$",
        "-1",
        "\0",
    ]
)
JSON = st.recursive(
    SCALARS | SHORT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8) | SHORT, inner, max_size=4),
    max_leaves=12,
)
KEYS = st.sampled_from(sorted(Task.model_fields)) | st.sampled_from(["min", "max", "count", "size", "on_events"])
NEARLY = st.recursive(
    SCALARS | SHORT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | SHORT, inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_any_json_is_resolved_or_refused(anything: Any) -> None:
    _told(anything)


@settings(max_examples=400)
@given(st.dictionaries(KEYS, NEARLY, max_size=8))
def test_anything_like_a_task_is_resolved_or_refused(fields: dict[str, Any]) -> None:
    _told({"type": "task", "commands": ["x"]} | fields)
    _told({**fields, "type": "task"})


def _told(anything: object) -> None:
    for error in mistakes(anything):
        json.dumps(error.model_dump(mode="json")).encode()
        assert error.message
        assert len(error.message) < 400
        assert "\n" not in error.message


@settings(max_examples=300)
@given(st.text(st.sampled_from("ab:-?*&!|>{}[]#\"'%@`, \n\t<~0.1_"), max_size=60) | st.text() | st.binary())
def test_any_text_is_read_or_refused(text: str | bytes) -> None:
    try:
        document = spec.load_yaml(text)
    except InvalidConfiguration as error:
        assert len(error.errors) == 1
        assert "\n" not in error.errors[0].message
    else:
        json.dumps(document)
        assert document.lines.at(("a", 0, "b")).line >= 1


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**17), 10**17)
    | st.text(st.characters(categories=["L", "Nd", "P"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc:# ", max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text("abcdef", min_size=1), PLAIN, min_size=1), st.booleans())
def test_what_is_dumped_as_yaml_is_read_back(mapping: dict[str, Any], flow: bool) -> None:
    text = yaml.safe_dump(mapping, allow_unicode=True, default_flow_style=flow)
    assert spec.load_yaml(text) == mapping


@given(st.dictionaries(st.text("abcdef", min_size=1), PLAIN, min_size=1))
def test_json_is_read_as_it_is(mapping: dict[str, Any]) -> None:
    assert spec.load_yaml(json.dumps(mapping, ensure_ascii=False)) == mapping


@given(st.text("0123456789._:-", min_size=1, max_size=12))
def test_a_number_is_only_what_would_be_written_back_the_same(word: str) -> None:
    try:
        found = spec.load_yaml(f"a: {word}")["a"]
    except InvalidConfiguration:
        return
    if not isinstance(found, dict | list):
        assert str(found) == word or found == word.rstrip()


@given(st.integers(0, 10**6), st.sampled_from(["s", "m", "h", "d", "w"]))
def test_durations_and_their_words(amount: int, unit: str) -> None:
    text = f"{amount}{unit}"
    try:
        seconds = durations.seconds(text)
    except ValueError:
        assert amount > 5000
        return
    assert durations.seconds(seconds) == durations.seconds(str(seconds)) == seconds
    assert (durations.offable(text), durations.offable_below_zero(text)) == (seconds, seconds)


@given(st.integers(0, 10**6) | st.none(), st.integers(0, 10**6) | st.none())
def test_ranges_and_their_words(low: int | None, high: int | None) -> None:
    task = {"type": "task", "commands": ["x"], "resources": {"cpu": {"count": {"min": low, "max": high}}}}
    if (low is None and high is None) or (low is not None and high is not None and low > high):
        assert mistakes(task)
        return
    words = ranges.CountRange(min=low, max=high).words()
    found = hardware.ResourcesSpec.model_validate({"cpu": words}).cpu.count
    assert (found.min, found.max) == (low, high)


@given(
    st.sampled_from([None, "nvidia", "amd"]),
    st.lists(st.sampled_from(["A100", "H100", "L4"]), unique=True, max_size=3),
    st.integers(1, 16),
    st.integers(1, 200) | st.none(),
    st.randoms(),
)
def test_the_parts_of_a_gpu_come_in_any_order(
    vendor: str | None, names: list[str], count: int, memory: int | None, random: Any
) -> None:
    parts = [vendor or "", ",".join(names), str(count), f"{memory}GB" if memory else ""]
    parts = [part for part in parts if part]
    random.shuffle(parts)
    found = hardware.ResourcesSpec.model_validate({"gpu": ":".join(parts)}).gpu
    assert found is not None
    assert found.vendor == vendor
    assert found.name == (tuple(names) or None)
    assert (found.count.min, found.count.max) == (count, count)
    assert (found.memory.min if found.memory else None) == memory


@given(st.dictionaries(st.text("ABC_", min_size=1, max_size=5), st.text("xyz=$ ", max_size=8), max_size=5))
def test_both_forms_of_an_environment_mean_the_same(env: dict[str, str]) -> None:
    doubled = {name: value.replace("$", "$$") for name, value in env.items()}
    as_list = [f"{name}={value}" for name, value in doubled.items()]
    for form in (doubled, as_list):
        assert resolve({"type": "task", "commands": ["x"], "env": form}).env == env
