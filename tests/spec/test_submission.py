"""What is wrong with a submission is told together with what is wrong in its configuration."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from perdure import spec
from perdure.spec.effective import Sealed, SecretRef
from perdure.spec.reading import read
from tests.spec.support import SUBMITTED, mistakes, resolve, task

HARDLY_RIGHT = """\
type: task
commands: ["echo $A"]
name: other
env: [A, "B=${{ secrets.nome }}"]
registry_auth: {username: "${{ env.USER }}", password: "${{ secrets.pass }}"}
files: [train.py]
image: i
deadline: 2020-01-01T00:00:00Z
"""
SAID = {
    "name": "the run is called 'hello'",
    "env[0]": "A has no value",
    "env[1]": "secrets.nome, which project main does not have",
    "registry_auth.username": "env.USER, which env does not have",
    "registry_auth.password": "secrets.pass",
    "files": "uploaded",
    "deadline": "which is past",
}
OPTIONS: dict[str, Any] = {"code": (), "secrets": ["name"]}


def said(text: str, **options: Any) -> dict[str, str]:
    return {error.path: error.message for error in mistakes(spec.load_yaml(text), **OPTIONS | options)}


@pytest.mark.parametrize("wrong", ["", "nodes: zero\n", "typo: 1\nmax_duration: 2H\n"])
def test_mistakes_of_submission_are_told_whatever_else_is_wrong(wrong: str) -> None:
    found = said(HARDLY_RIGHT + wrong)
    assert {path: words for path, words in SAID.items() if words not in found.get(path, "")} == {}
    assert found.keys() - SAID.keys() == {line.partition(":")[0] for line in wrong.splitlines()}


@pytest.mark.parametrize("options", [{"profile": {"name": "p", "max_price": "x"}}, {"flags": {"resources": 1}}])
def test_they_are_told_beside_the_mistakes_of_another_layer(options: dict[str, Any]) -> None:
    assert said(HARDLY_RIGHT, **options).keys() == SAID.keys() | {"max_price", "resources"} & {
        *options.get("profile", ()),
        *options.get("flags", ()),
    }
    assert said(HARDLY_RIGHT + "nodes: zero", **options).keys() >= SAID.keys() | {"nodes"}


def test_what_another_layer_has_a_say_in_is_not_told_too_soon() -> None:
    found = said(HARDLY_RIGHT + "nodes: zero", flags={"env": {"A": "x"}, "deadline": "1h"})
    assert found.keys() == SAID.keys() - {"env[0]", "env[1]", "registry_auth.username", "deadline"} | {"nodes"}


def test_nothing_is_told_that_only_follows_from_what_is_wrong() -> None:
    found = said(HARDLY_RIGHT.replace("env: [A,", "env: [A, 1B=x,").replace("name: other", "name: Other_"))
    assert "is not a name" in found["name"]
    assert "does not begin with the name of a variable" in found["env[1]"]
    assert found.keys() == SAID.keys() - {"env[0]", "registry_auth.username"}


@pytest.mark.parametrize("kind", ["type: service\nport: 80", "type: dev-environment"])
def test_they_are_told_of_every_kind_of_run(kind: str) -> None:
    found = said(f"{kind}\nimage: i\nname: other\nenv: [A]\ndeadline: 2020-01-01T00:00:00Z")
    assert found.keys() == {"name", "env[0]", "deadline"}


def test_a_probe_refers_to_variables_that_are_there() -> None:
    text = "type: service\nport: 80\nimage: i\nprobes: [{type: http, url: '/${{ env.KEY }}'}]"
    assert said(text).keys() == {"probes[0].url"}
    assert said(text, sealed={"KEY": ""}).keys() == {"type"}


@pytest.mark.parametrize("kind", ["task", "service\nport: 80"])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('entrypoint: "a \'b"', "quote"),
        ("entrypoint: ''", "empty"),
        ("commands: ['# later', ' ']", "nothing to run"),
    ],
)
def test_what_cannot_be_started_is_known_without_a_submission(kind: str, text: str, words: str) -> None:
    image = "image: i\n" if "entrypoint" in text else ""
    (error,) = read(spec.load_yaml(f"type: {kind}\n{image}{text}")).invalid
    assert words in error.message
    assert error.hint


def test_arguments_alone_are_something_to_run() -> None:
    document = spec.load_yaml("type: task\ncommands: ['${{ run.args }}']")
    assert mistakes(document, arguments=["echo"]) == []
    (error,) = mistakes(document)
    assert (error.path, error.hint) == ("commands", "give them after --")


def test_a_deadline_is_ahead_of_the_submission() -> None:
    late = SUBMITTED + timedelta(seconds=1)
    assert "is past" not in str(mistakes(task(f"deadline: {late.isoformat()}")))
    assert "is past" in str(mistakes(task(f"deadline: {SUBMITTED.isoformat()}")))
    assert "is past" in str(mistakes(task(""), profile={"deadline": SUBMITTED.isoformat()}))
    assert "is past" not in str(mistakes(task("deadline: 1s")))


def test_without_a_submission_a_deadline_is_ahead_of_now() -> None:
    past = read(task(f"deadline: {(datetime.now(UTC) - timedelta(minutes=1)).isoformat()}"))
    assert [error.path for error in past.invalid] == ["deadline"]
    assert read(task(f"deadline: {(datetime.now(UTC) + timedelta(hours=1)).isoformat()}")).invalid == []


def test_what_is_given_beside_the_configuration_is_shown_by_name() -> None:
    run = resolve(task("env: [A, B=x]"), sealed={"A": "1", "B": "2", "C": "3"})
    rows = {one.path: (one.value, one.origin.words(), one.data) for one in run.values}
    assert rows["env"] == ("A, B, C", "configuration", ["A", "B", "C"])
    assert {path: row for path, row in rows.items() if path.startswith("env.")} == {
        "env.A": ("A of your environment", "configuration", None),
        "env.B": ("given", "-e", None),
        "env.C": ("given", "-e", None),
    }
    alone = {one.path: one.origin.words() for one in resolve(task(""), sealed={"C": "3"}).values}
    assert (alone["env"], alone["env.C"]) == ("-e", "-e")


@pytest.mark.parametrize("name", ["", "A=B", "A B", "A\nB", "\0", "\ud800", "${{x}}", "A\u00a0"])
def test_a_value_is_for_a_variable_that_a_process_can_be_given(name: str) -> None:
    told = {error.path: error.message for error in mistakes(task(""), sealed={name: "Ym94"})}
    assert told.keys() == {"env"}
    assert "which is not the name of a variable" in told["env"]
    for value in ("x", {"key": "A"}):
        (error,) = mistakes({"type": "task", "commands": ["x"], "env": {name: value}}, sealed={"A": "Ym94"})
        assert error.message.startswith("is not the name of a variable")
    (error,) = mistakes({"type": "task", "commands": ["x"], "env": {"B": {"key": name}}})
    assert error.message.startswith("is not the name of a variable")


@pytest.mark.parametrize("name", ["A", "A-B", "1A", "a.b", "\u00e9"])
def test_a_variable_need_not_have_a_name_that_a_shell_knows(name: str) -> None:
    run = resolve(
        {"type": "task", "commands": ["x"], "env": {name: {"key": name}, "B": "${{ secrets.s }}"}},
        sealed={name: "Ym94"},
    )
    assert run.env == {name: Sealed(sealed="Ym94"), "B": (SecretRef(secret="s"),)}


def test_a_value_given_for_a_variable_stands_above_where_it_would_come_from() -> None:
    run = resolve({"type": "task", "commands": ["x"], "env": {"B": {"key": "ZZ"}}}, sealed={"B": "Ym94"})
    assert run.env == {"B": Sealed(sealed="Ym94")}
