"""Text to mapping: what plain words mean, what is refused, and where it says the fault is."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure import spec
from perdure.model.errors import InvalidConfiguration
from perdure.spec.document import MAX_BYTES
from tests.spec.grammars.kinds import KINDS
from tests.spec.grammars.spelling import yaml_texts
from tests.spec.support import mistakes, resolve, task, unreadable


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("off", "off"),
        ("yes", "yes"),
        ("80:50", "80:50"),
        ("2222:22", "2222:22"),
        ("3.10", "3.10"),
        ("3.1", 3.1),
        ("0123", "0123"),
        ("1_000", "1_000"),
        ("0x10", "0x10"),
        ("1e3", "1e3"),
        ("8", 8),
        ("-1", -1),
        ("0.5", 0.5),
        (".5", ".5"),
        ("true", True),
        ("false", False),
        ("~", None),
        ("null", None),
        ("", None),
        ('"8"', "8"),
        ("'true'", "true"),
        ("2026-01-01", "2026-01-01"),
        (".nan", ".nan"),
        ("9" * 30, "9" * 30),
        ("https://h:8443/a", "https://h:8443/a"),
    ],
)
def test_a_plain_word_means_what_is_written(text: str, value: object) -> None:
    found = spec.load_yaml(f"a: {text}")["a"]
    assert found == value
    assert type(found) is type(value)


def test_the_traps_of_yaml_1_1_mean_what_the_writer_meant() -> None:
    run = resolve(
        spec.load_yaml(
            "type: task\nimage: i\nuser: 1000:50\nports: [80:50, 2222:22]\nmax_duration: off\n"
            "priority: 0_50\nenv:\n  ZIP: 0123\n  VERSION: 3.10\n  COUNT: 1_000\n  SWITCH: on\n"
            "resources:\n  cpu: 0_4"
        )
    )
    assert run.user == "1000:50"
    assert [(port.local, port.container) for port in run.ports] == [(80, 50), (2222, 22)]
    assert run.max_duration is None
    assert run.policy.priority == 50
    assert run.env == {"ZIP": "0123", "VERSION": "3.10", "COUNT": "1_000", "SWITCH": "on"}
    assert run.policy.requirements.cpu.min == 4


def test_quotes_never_change_a_meaning() -> None:
    plain = resolve(task("nodes: 2\npriority: 7\nmax_duration: 90\nstop_duration: off\nresources: {gpu: 1}"))
    quoted = resolve(
        task('nodes: "2"\npriority: "7"\nmax_duration: "90"\nstop_duration: "off"\nresources: {gpu: "1"}')
    )
    nothing: dict[str, object] = {}
    assert plain.but(configuration=nothing) == quoted.but(configuration=nothing)


def test_anchors_and_merges_are_read() -> None:
    document = spec.load_yaml("a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  y: 3\nc: *a")
    assert document == {"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 3}, "c": {"x": 1, "y": 2}}


def test_a_byte_order_mark_is_not_part_of_the_text() -> None:
    assert spec.load_yaml("\ufefftype: task") == {"type": "task"}


@pytest.mark.parametrize(
    ("text", "words", "line", "column"),
    [
        ("", "empty", None, None),
        ("# nothing\n", "empty", None, None),
        ("null", "empty", None, None),
        ("- a", "must be a mapping", 1, 1),
        ("just words", "must be a mapping", 1, 1),
        ("a: 1\n---\nb: 2", "more than one document", 2, 1),
        ("a: 1\nb: 2\na: 3", "'a' twice", 3, 1),
        ("a:\n  b: 1\n  b: 2", "'b' twice", 3, 3),
        ("a: !!python/object:os.system x", "tag", 1, 4),
        ("a: !x 1", "tag", 1, 4),
        ("a: *nowhere", "", 1, 4),
        ("a: &a [*a]", "inside the very thing", 1, 8),
        ("? [a]\n: 1", "not a text", 1, 3),
        ("a: {{ x }}", "not a text", 1, 5),
        ("a: 1\n\tb: 2", "tab", 2, 1),
        ("a:\n  - b\n \t- c", "tab", 3, 2),
        ("a: b: c", "`: ` inside a text", 1, 5),
        ("a: [1, 2", "not closed", 1, 4),
        ("a: 'b", "not closed", 1, 4),
        ("a: @b", "begins with @", 1, 4),
        ("a: 1\nb: \x01", "U+0001", 2, 4),
        ("a: 1\nb: x\0", "U+0000", 2, 5),
        ("a: \ud800", "U+D800", 1, 4),
        (b"a: 1\nb: caf\xe9", "byte 0xe9", 2, 7),
        ("a: 1\n<<: 3", "<<", 2, 5),
    ],
)
def test_what_cannot_be_read_is_told_in_one_sentence_with_its_place(
    text: str | bytes, words: str, line: int | None, column: int | None
) -> None:
    error = unreadable(text)
    assert words in error.message
    assert "\n" not in error.message
    if line is not None:
        assert (error.line, error.column) == (line, column)


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "\n".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)
)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: " + "x" * MAX_BYTES, "256 KiB"),
        (b"a: " + b"x" * MAX_BYTES, "256 KiB"),
        ("a: " + "é" * (MAX_BYTES // 2), "256 KiB"),
        ("a: " + "[" * 101 + "]" * 101, "100 levels"),
        ("a: " + "[" * 100_000, "100 levels"),
        ("a:\n" + "\n".join(" " * n + "- a:" for n in range(2, 300, 2)), "100 levels"),
        ("a: [" + "x," * 20_001 + "]", "20,000 values"),
        (BOMB, "20,000 values once its aliases"),
        (f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 50)}]", "1 MiB once its aliases"),
    ],
)
def test_what_is_too_large_is_refused_at_once(text: str | bytes, words: str) -> None:
    started = time.process_time()
    assert words in unreadable(text).message
    assert time.process_time() - started < 1


def test_a_hundred_levels_and_twenty_thousand_values_are_read() -> None:
    assert spec.load_yaml("a: " + "[" * 99 + "]" * 99)
    assert len(spec.load_yaml("a: [" + "x," * 19_000 + "]")["a"]) == 19_000


def test_a_large_file_of_mistakes_is_refused_quickly_with_the_first_fifty() -> None:
    document = spec.load_yaml("type: task\ncommands: [x]\n" + "\n".join(f"comands{n}: 1" for n in range(9_000)))
    started = time.process_time()
    errors = mistakes(document)
    assert time.process_time() - started < 2
    assert len(errors) == 51
    assert errors[-1].message == "has 8950 more mistakes"
    assert errors[0].path == "comands0"


ANY_KIND = st.one_of(*KINDS.values())


@settings(max_examples=80)
@given(ANY_KIND, st.data())
def test_no_style_of_yaml_changes_what_is_read(said: Any, data: st.DataObject) -> None:
    text = data.draw(yaml_texts(said.written))
    assert spec.load_yaml(text) == said.written


@settings(max_examples=80)
@given(ANY_KIND, st.data())
def test_no_quotes_change_what_is_meant(said: Any, data: st.DataObject) -> None:
    text = data.draw(yaml_texts(said.written, loose=True))
    assert spec.parse(spec.load_yaml(text)) == spec.parse(said.written)


@settings(max_examples=150)
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
MAPPINGS = st.dictionaries(st.text("abcdef", min_size=1), PLAIN, min_size=1)


@given(MAPPINGS, st.booleans())
def test_what_another_program_writes_as_yaml_is_read_back(mapping: dict[str, Any], flow: bool) -> None:
    text = yaml.safe_dump(mapping, allow_unicode=True, default_flow_style=flow)
    assert spec.load_yaml(text) == mapping


@given(MAPPINGS)
def test_json_is_read_as_it_is(mapping: dict[str, Any]) -> None:
    assert spec.load_yaml(json.dumps(mapping, ensure_ascii=False)) == mapping


@given(st.text("0123456789._:-+eEx", min_size=1, max_size=12))
def test_a_number_is_only_what_would_be_written_back_the_same(word: str) -> None:
    try:
        found = spec.load_yaml(f"a: {word}")["a"]
    except InvalidConfiguration:
        return
    if not isinstance(found, dict | list):
        assert str(found) == word
