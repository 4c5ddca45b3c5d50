"""What is told about common slips: what to write instead, so that nobody has to look it up."""

from __future__ import annotations

import pytest

from perdure import spec
from perdure.model.errors import FieldError, InvalidConfiguration
from perdure.spec.grammar.names import BACKENDS
from tests.spec.support import mistakes, task

COMMANDS = "type: task\ncommands:\n  - "


def the_only(errors: list[FieldError]) -> FieldError:
    assert len(errors) == 1, errors
    return errors[0]


def in_profile(text: str) -> list[FieldError]:
    with pytest.raises(InvalidConfiguration) as caught:
        spec.parse_profiles(spec.load_yaml(f"profiles:\n  - name: a\n    {text}"))
    return caught.value.errors


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("gpu: A100", "it belongs under resources: write gpu"),
        ("gpus: 1", "it belongs under resources: write gpu"),
        ("cpu: 4", "it belongs under resources: write cpu"),
        ("memory: 16GB", "it belongs under resources: write memory"),
        ("disk: 100GB", "it belongs under resources: write disk"),
        ('cron: "15 23 * * *"', "it belongs under schedule: write cron"),
        ("resources:", "indent by two spaces what belongs to it"),
        ("resources: gpu:1", "write a space after `gpu:`"),
        ("timeout: 1h", "did you mean max_duration?"),
        ("docker_image: x", "did you mean image?"),
        ("environment: [A=1]", "did you mean env?"),
    ],
)
def test_a_key_in_the_wrong_place_or_of_another_tongue_is_told_where_it_belongs(text: str, hint: str) -> None:
    assert (the_only(mistakes(task(text))).hint or "").startswith(hint)


@pytest.mark.parametrize("text", ["image: x", "env: [A=1]", "commands: [x]", "resources: {gpu: 1}", "gpu: 1"])
def test_what_a_profile_may_not_have_is_told_to_belong_to_the_run(text: str) -> None:
    assert (the_only(in_profile(text)).hint or "").startswith("a profile may not have it")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("echo key: value", "put the text into quotes: 'echo key: value'"),
        ("""python -c "print({'a': 1})\"""", """put the text into quotes: 'python -c "print({''a'': 1})"'"""),
        ("echo retries: 3", "put the text into quotes: 'echo retries: 3'"),
        (f"echo {'x' * 100}: y", "put the text into quotes"),
    ],
)
def test_a_command_that_yaml_took_for_a_mapping_is_shown_in_quotes(text: str, hint: str) -> None:
    error = the_only(mistakes(spec.load_yaml(COMMANDS + text)))
    assert error.hint == hint
    assert error.line == 3


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("files: ['a': b]", "write a:b"),
        ("ports: [80: 8000]", "write 80:8000"),
        ("volumes: [data: /data]", "write data:/data"),
        ("repos: [.: /app]", "write .:/app"),
    ],
)
def test_a_blank_after_the_colon_of_a_short_form_is_one_mistake(text: str, hint: str) -> None:
    assert the_only(mistakes(task(text))).hint == hint


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("resources: {memory: 8GB-16GB}", "16GB..64GB for a range"),
        ("resources: {memory: 16G}", "16GB.. for at least"),
        ("retry: 3", "{max_attempts: 3}"),
        ("deadline: tomorrow", "write 12h, or 2026-12-31T18:00:00Z"),
        ("backends: [AWS]", "did you mean aws?"),
        ("backends: [kuberntes]", "did you mean kubernetes?"),
        ("backends: [acme]", "one of amddevcloud, aws, "),
        ("schedule: {cron: '1 1 * * *', timezone: CEST}", "write the place by its name, such as Europe/Berlin"),
        ("schedule: {cron: '1 1 * * *', timezone: Europe/Berln}", "did you mean Europe/Berlin?"),
        ("instances: [{name: a, hostname: b}]", "give one of name, hostname, or fleet and instance"),
    ],
)
def test_what_to_write_instead_is_in_the_hint(text: str, hint: str) -> None:
    assert hint in (the_only(mistakes(task(text))).hint or "")


def test_every_backend_can_be_told_by_three_letters() -> None:
    assert len({name[:3] for name in BACKENDS}) == len(BACKENDS)


def test_what_has_no_switch_says_so() -> None:
    assert the_only(mistakes(task("stop_grace: off"))).message == "is 'off', and it cannot be switched on or off"


@pytest.mark.parametrize("text", ["", "- name: a", "just words"])
def test_a_file_of_profiles_is_told_how_it_begins(text: str) -> None:
    with pytest.raises(InvalidConfiguration) as caught:
        spec.load_yaml(text, ".perdure/profiles.yml")
    assert "`profiles:`" in (the_only(caught.value.errors).hint or "")


def test_no_type_is_offered_that_is_refused() -> None:
    hint = the_only(mistakes(spec.load_yaml("name: x"))).hint or ""
    assert "preset" not in hint
    assert "task" in hint


def test_each_unknown_reference_of_one_text_is_told() -> None:
    errors = mistakes(spec.load_yaml(COMMANDS + "echo ${{ env.A }} ${{ secrets.x }} ${{ run.arg }} ${{ env.A }}"))
    told = [error.message.split(",")[0] for error in errors]
    assert told == ["refers to env.A", "refers to secrets.x", "refers to run.arg"]
    assert {error.path for error in errors} == {"commands[0]"}
