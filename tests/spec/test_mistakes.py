"""Mistakes are told all at once, each with its path, place, and what to write instead."""

from __future__ import annotations

import pytest

from perdure import spec
from perdure.model.errors import InvalidConfiguration
from perdure.spec.reading import read
from tests.spec.support import mistakes, task

WRONG = """\
type: task
name: hello
comands:
  - echo hi
nodes: zero
env:
  - A=1
  - 1B=2
resources:
  gpu: A100:A10
  cpus: 4
retry:
  on_events: [no-capacty]
volumes:
  - data
"""


def test_every_mistake_is_told_with_its_path_and_place() -> None:
    found = {error.path: error for error in mistakes(spec.load_yaml(WRONG))}
    places = {path: (error.line, error.column) for path, error in found.items()}
    assert places == {
        "comands": (3, 1),
        "nodes": (5, 8),
        "env[1]": (8, 5),
        "resources.gpu": (10, 8),
        "resources.cpus": (11, 3),
        "retry.on_events[0]": (13, 15),
        "volumes[0]": (15, 5),
    }
    assert found["comands"].hint == "did you mean commands?"
    assert found["resources.cpus"].hint == "did you mean cpu?"
    assert found["retry.on_events[0]"].hint == "did you mean no-capacity?"
    assert list(found) == sorted(found, key=lambda path: places[path])


def test_a_plain_mapping_has_the_same_mistakes_without_places() -> None:
    document = spec.load_yaml(WRONG)
    plain = mistakes({**document})
    assert {(error.path, error.message) for error in plain} == {
        (error.path, error.message) for error in mistakes(document)
    }
    assert all(error.line is None for error in plain)
    assert [document.lines.locate(error).line for error in plain if error.path == "env[1]"] == [8]


@pytest.mark.parametrize(
    "anything",
    [None, [1], "x", 3, 1.5, True, {}, {"x": 1}, {1: 2}, {"type": 1}, {"type": ["task"]}, {"type": None}],
)
def test_what_is_no_configuration_at_all_has_one_mistake(anything: object) -> None:
    errors = mistakes(anything)
    assert len(errors) == 1
    with pytest.raises(InvalidConfiguration):
        spec.parse(anything)
    with pytest.raises(InvalidConfiguration):
        spec.parse_fleet(anything)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"type": "tsk"}, "did you mean task?"),
        ({"type": "TASK"}, "did you mean task?"),
        ({"type": "preset"}, "presets are not supported"),
        ({"type": "fleet", "nodes": 1}, "not a run"),
        ({"type": "volume", "size": 1}, "not a run"),
    ],
)
def test_a_wrong_type_is_told_what_would_be_right(config: object, words: str) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        spec.parse(config) if isinstance(config, dict) and config["type"] == "preset" else spec.parse_run(config)
    assert words in str(caught.value)


@pytest.mark.parametrize("text", ["fleet\nnodes: 1", "volume\nbackend: aws\nregion: r\nsize: 1"])
def test_what_is_no_run_is_not_resolved(text: str) -> None:
    (error,) = mistakes(spec.load_yaml(f"type: {text}"))
    assert (error.path, error.line) == ("type", 1)
    assert "which is not a run" in error.message


def test_no_message_repeats_the_value_of_a_variable() -> None:
    for env in (["TOKEN=s3cret\0", "1X=s3cret", "s3cret-itself"], {"A": ["s3cret"], "B": {"s3cret": 1}}):
        errors = mistakes({"type": "task", "commands": ["x"], "env": env})
        assert errors
        assert "s3cret" not in str(InvalidConfiguration(errors))
    login = {"username": ["s3cret"], "password": {"a": "s3cret"}}
    errors = mistakes({"type": "task", "image": "i", "registry_auth": login})
    assert len(errors) == 2
    assert "s3cret" not in str(InvalidConfiguration(errors))


@pytest.mark.parametrize("field", ["repos: ['{}:b:c']", "nodes: '{}'", "spot_policy: '{}'", "'{}': 1"])
@pytest.mark.parametrize("login", ["me:s3cret", "s3cret", "me:aaa@s3cret", ":s3cret"])
def test_no_message_repeats_what_a_url_has_in_front_of_its_host(field: str, login: str) -> None:
    (error,) = mistakes(task(field.format(f"https://{login}@host:8443/a")))
    assert "s3cret" not in str(InvalidConfiguration([error]))


def test_a_url_without_its_beginning_is_not_repeated() -> None:
    (error,) = mistakes(task("repos: ['me:s3cret@host.com/a']"))
    assert "https://" in (error.hint or "")
    assert "s3cret" not in str(InvalidConfiguration([error]))


@pytest.mark.parametrize("url", ["https://me:s3cret@host/a", "https://me:aaa@s3cret@host:8443/a", "git@h:a/b:/x"])
def test_no_plan_shows_what_a_url_has_in_front_of_its_host(url: str) -> None:
    found = read(task(f"repos: ['{url}']"))
    assert "s3cret" not in str([one.model_dump(mode="json") for one in found.effective])
    assert [warning for warning in found.warnings if "token in the URL of repos[0]" in warning] == (
        list(found.warnings) if "://" in url else []
    )
    assert "s3cret" not in str(found.warnings)


def test_a_path_is_always_text_that_can_be_sent() -> None:
    for key in ("\0", "\ud800", "x" * 1000, "a\nb"):
        (error,) = mistakes({"type": "task", "commands": ["x"], key: 1})
        assert error.path.isprintable()
        assert len(error.path) < 300
        error.model_dump_json()


@pytest.mark.parametrize(
    ("text", "path", "words"),
    [
        ("dstack: true", "dstack", "control plane"),
        ("docker: true", "docker", "not supported yet"),
        ("python: 3.12", "python", "default image"),
        ("nvcc: true", "nvcc", "default image"),
        (
            "utilization_policy: {min_gpu_utilization: 10, time_window: 1h}",
            "utilization_policy",
            "not supported yet",
        ),
        ("reservation: r-1", "reservation", "not supported yet"),
        ("availability_zones: [a]", "availability_zones", "not supported yet"),
        ("instances: [a]", "instances", "not supported yet"),
        ("backend_options: [{type: vastai}]", "backend_options", "not supported yet"),
        ("fleets: [a, other/b]", "fleets[1]", "another project"),
        ("volumes: ['/a:/b', 'v:/p']", "volumes[1]", "network volume"),
        ("repos: ['https://example.com/a']", "repos[0]", "by URL"),
        ("repos: [{local_path: ., branch: main}]", "repos[0]", "branch"),
        ("name: My_Run", "name", "not a name"),
        ("name: other", "name", "the run is called 'hello'"),
        ("env: [HF_TOKEN]", "env[0]", "HF_TOKEN has no value"),
        ('entrypoint: "a \'b"', "entrypoint", "quote"),
        ("entrypoint: ''", "entrypoint", "empty"),
        ("stop_duration: -5", "stop_duration", "negative"),
        ("retry: {duration: off}", "retry.duration", "cannot be switched"),
        ("retry: maybe", "retry", "neither true, false"),
        ("nodes: 10_001", "nodes", "at most 10000"),
        ("image: i\npython: 3.12", "python", "together with image"),
    ],
)
def test_what_cannot_be_honoured_is_refused_in_one_sentence(text: str, path: str, words: str) -> None:
    errors = [error for error in mistakes(task(text)) if error.path == path]
    assert len(errors) == 1
    assert words in f"{errors[0].message} {errors[0].hint}"


def test_groups_are_read_and_refused() -> None:
    (error,) = mistakes(spec.load_yaml("type: task\ngroups: [{commands: [x]}]"))
    assert (error.path, error.line) == ("groups", 2)


@pytest.mark.parametrize("text", ["type: service\nport: 80\nimage: i", "type: dev-environment\nide: vscode"])
def test_what_is_not_a_task_is_refused_when_it_is_submitted(text: str) -> None:
    assert spec.parse_run(spec.load_yaml(text)).type in text
    (error,) = mistakes(spec.load_yaml(text))
    assert error.path == "type"
    assert "not supported yet" in error.message


@pytest.mark.parametrize("text", ["", "commands: []", "docker: true", "entrypoint: x"])
def test_a_task_with_neither_image_nor_commands_is_refused(text: str) -> None:
    (error,) = mistakes(spec.load_yaml(f"type: task\n{text}"))
    assert "nothing to run" in error.message


def test_a_task_of_blanks_and_comments_is_refused() -> None:
    (error,) = mistakes(spec.load_yaml("type: task\ncommands: ['# later', '  ']"))
    assert "nothing to run" in error.message


def test_local_files_must_have_been_uploaded() -> None:
    document = task("files: [train.py]")
    assert mistakes(document) == []
    (error,) = mistakes(document, code=())
    assert (error.path, error.line) == ("files", 3)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("ssh_config: {user: u, identity_file: k, hosts: [h]}", "ssh_config"),
        ("", "nodes"),
        ("nodes: 1\nenv: [A=1]", "env"),
        ("nodes: 1\nreservation: r", "reservation"),
        ("nodes: 1\nname: A", "name"),
        ("nodes: 1\nmax_duration: 1h", "max_duration"),
    ],
)
def test_fleets_that_cannot_be_had_are_refused(text: str, path: str) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        spec.parse_fleet(spec.load_yaml(f"type: fleet\n{text}"))
    assert [error.path for error in caught.value.errors] == [path]


def test_an_ssh_fleet_is_told_which_fields_are_not_its_own() -> None:
    text = "type: fleet\nssh_config: {user: u, identity_file: k, hosts: [h]}\nresources: {cpu: 1}\nidle_duration: 1"
    with pytest.raises(InvalidConfiguration) as caught:
        spec.parse_fleet(spec.load_yaml(text))
    assert [error.path for error in caught.value.errors] == ["resources", "idle_duration"]


@pytest.mark.parametrize("kind", ["task\ncommands: [a]", "dev-environment\nide: vscode", "fleet\nnodes: 1"])
def test_what_is_no_name_is_told_where_it_stands(kind: str) -> None:
    document = spec.load_yaml(f"type: {kind}\nname: Typo_Name\n")
    with pytest.raises(InvalidConfiguration) as caught:
        spec.parse(document)
    (error,) = caught.value.errors
    assert (error.path, error.line) == ("name", len(kind.splitlines()) + 1)
    assert "is not a name: 'Typo_Name'" in error.message


def test_a_port_that_is_none_is_told_once() -> None:
    for written in ("99999", "'99999:80'", "'80:0'"):
        with pytest.raises(InvalidConfiguration) as caught:
            spec.parse_run(task(f"ports: [{written}]"))
        assert [error.path for error in caught.value.errors] == ["ports[0]"]


@pytest.mark.parametrize(
    ("text", "path", "message", "hint"),
    [
        ("resources: {memory: 64GB..16GB}", "resources.memory", "begins after it ends: 64GB..16GB", "16GB..64GB"),
        ("resources: {cpu: 8..4}", "resources.cpu", "begins after it ends: 8..4", "write 4..8"),
        ("env: [A=1, A=2]", "env", "has A twice", "leave one of them out"),
        ("env: A=1", "env", "is neither a list of NAME=value nor a map", "`- NAME=value`"),
        ("max_duration: -1", "max_duration", "is -1, and a duration cannot be negative", "off switches it off"),
        ("stop_grace: -1", "stop_grace", "is -1, and a duration cannot be negative", "one unit of s, m, h"),
        ("tags: [a]", "tags", "is a list, where a mapping is wanted", "tags: {team: vision}"),
        ("nodes: 1..2", "nodes", "is '1..2', where a whole number is wanted", "nodes: 2"),
        ("volumes: [1]", "volumes[0]", "is not a mount", "volume:/path"),
        ("foo: 1", "foo", "is not a key known here", "perdure schema task"),
    ],
)
def test_a_mistake_is_told_with_what_to_write(text: str, path: str, message: str, hint: str) -> None:
    (error,) = mistakes(task(text))
    assert (error.path, error.message) == (path, message)
    assert hint in (error.hint or "")


def test_both_mistakes_of_a_repository_are_told() -> None:
    errors = mistakes(task("repos: [{local_path: a, url: b, path: ~user/x}]"))
    assert [error.path for error in errors] == ["repos[0].url", "repos[0].path"]
    (error,) = mistakes(task("repos: [{path: /r}]"))
    assert (error.path, error.message) == ("repos[0]", "has neither local_path nor url")
