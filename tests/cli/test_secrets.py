"""``perdure secret``: what is asked, printed and refused."""

from __future__ import annotations

import json
import sys

import pexpect
import pytest

from tests.cli.conftest import FakeClient, Program, a_secret

TYPED = "from perdure.cli.hidden import typed; print(ascii(typed('Value: ')))"


def test_a_value_is_set_changed_and_printed_as_it_is(perdure: Program, fake: FakeClient):
    assert perdure("secret", "set", "key", "one").err == "Secret key is set.\n"
    assert perdure("secret", "set", "key", "two [bold]").err == "Secret key is changed.\n"
    ended = perdure("secret", "get", "key")
    assert (ended.code, ended.out, ended.err) == (0, "two [bold]\n", "")
    assert json.loads(perdure("secret", "get", "key", "--json").out) == {"name": "key", "value": "two [bold]"}


@pytest.mark.parametrize(
    ("piped", "kept"),
    [
        ("a\n", "a"),
        ("a\r\n", "a\r"),
        ("a", "a"),
        ("a\n\n", "a\n"),
        (" ä \r", " ä \r"),
        ("-----BEGIN\nx\n-----END\n", "-----BEGIN\nx\n-----END"),
    ],
)
def test_a_piped_value_loses_only_its_last_line_end(perdure: Program, fake: FakeClient, piped: str, kept: str):
    assert perdure("secret", "set", "key", "-", input=piped).code == 0
    assert fake.secrets.values == {"key": kept}


@pytest.mark.parametrize(
    ("arguments", "piped", "said"),
    [
        (["bad name", "x"], "", "'bad name' is not the name of a secret"),
        (["key", ""], "", "the value of the secret key is empty"),
        (["key", "-"], "\n", "the value of the secret key is empty"),
        (["key", "-"], "x" * 5001, "has 5001 characters, and 5000 are the most"),
        (["key", "-"], "ä" * 30000, "5000 are the most"),
        (["key", "-"], "x" + "ä" * 30000, "5000 are the most"),
        (["key", "-"], "a\0b", "has a NUL"),
        (["key", "-"], "\udcff", "it has bytes that are not UTF-8"),
        (["key"], "", "nobody is there to ask"),
        (["key", "x", "--project", "a b"], "", "'a b' is not the name of a project"),
    ],
)
def test_what_cannot_be_kept_is_refused_in_a_sentence_without_the_value(
    perdure: Program, fake: FakeClient, arguments: list[str], piped: str, said: str
):
    ended = perdure("secret", "set", *arguments, input=piped)
    assert ended.code == 1
    assert said in ended.err
    assert ended.err.count("\n") == 2
    assert fake.secrets.values == {}


def test_secrets_are_listed_without_their_values(perdure: Program, fake: FakeClient):
    assert "No secrets in project main. Begin with: perdure secret set NAME" in perdure("secret").err
    fake.secrets.values = {"key": "s3cret", "other": "s3cret"}
    ended = perdure("secret")
    assert ended.out == perdure("secret", "list").out
    assert [line.split()[0] for line in ended.out.splitlines() if line[:1].isalpha()] == ["NAME", "key", "other"]
    assert "bob" in ended.out
    listed = perdure("secret", "--json").out
    assert json.loads(listed)["secrets"][0] == json.loads(a_secret("key").model_dump_json())
    assert "s3cret" not in ended.out + listed


def test_a_secret_is_deleted_once_somebody_agreed(perdure: Program, fake: FakeClient, somebody: None):
    fake.secrets.values = {"key": "s3cret"}
    assert perdure("secret", "delete", "key", input="n\n").code == 0
    assert fake.secrets.values
    assert perdure("secret", "delete", "key", input="y\n").err.endswith("Secret key is deleted.\n")
    assert not fake.secrets.values
    ended = perdure("secret", "delete", "key", "-y")
    assert ended.code == 1
    assert "there is no secret key in project main" in ended.err


def test_names_are_completed(perdure: Program, fake: FakeClient):
    from perdure.cli.completion import secrets

    class Context:
        params = {"project": "main"}

    fake.secrets.values = {"hf": "x", "aws": "x", "hub": "x"}
    assert secrets(Context(), "h") == ["hf", "hub"]  # type: ignore[arg-type]


def typed(*lines: str) -> str:
    """What a terminal shows when somebody types."""
    child = pexpect.spawn(sys.executable, ["-c", TYPED], encoding="utf-8", timeout=60)
    child.expect("Value: ")
    for line in lines:
        child.send(line)
    child.expect(pexpect.EOF)
    child.close()
    return child.before


def test_a_typed_value_is_not_shown():
    shown = typed("hunter2\r")
    assert shown.split() == ["'hunter2'"]


@pytest.mark.parametrize(
    ("keys", "kept"),
    [
        ("abc\x7f\x7fd\r", "ad"),
        ("äé\x7f!\r", "\\xe4!"),
        ("wrong\x15right\r", "right"),
        ("x" * 5000 + "\r", "x" * 5000),
        ("\r", ""),
    ],
)
def test_a_typed_value_is_taken_whole_and_can_be_mended(keys: str, kept: str):
    assert typed(keys).split() == [f"'{kept}'"]


def test_a_pasted_value_of_several_lines_is_refused_not_cut():
    shown = typed("-----BEGIN KEY-----\rsecond\r")
    assert "more than one line was typed" in shown
    assert "BEGIN" not in shown
    assert "second" not in shown


@pytest.mark.parametrize("option", [["--project", "other"], ["--json"]])
def test_an_option_that_would_be_lost_in_front_of_the_command_is_refused(
    perdure: Program, fake: FakeClient, option: list[str]
):
    ended = perdure("secret", *option, "set", "key", "x")
    assert ended.code == 2
    assert f"{option[0]} stands behind the command" in ended.err
    assert fake.secrets.values == {}


@pytest.mark.parametrize("words", [[], ["set"], ["get"], ["list"], ["delete"]])
def test_every_command_has_help(perdure: Program, words: list[str]):
    ended = perdure("secret", *words, "--help")
    assert ended.code == 0
    assert "Usage: perdure secret" in ended.out
