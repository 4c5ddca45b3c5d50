"""``${{ … }}``: what stands for what, where, and what is refused."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.spec.effective import RegistryAuth, Sealed
from perdure.spec.interpolation import BadReference, interpolate
from tests.spec.support import mistakes, resolve


def test_arguments_are_quoted_for_the_shell() -> None:
    run = resolve(
        {"type": "task", "commands": ["python train.py ${{ run.args }}", "echo ${{run.args}}"]},
        arguments=("--name", "a b", "$HOME"),
    )
    assert run.commands == ("python train.py --name 'a b' '$HOME'", "echo --name 'a b' '$HOME'")


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))))
def test_any_arguments_reach_the_shell_as_they_are(arguments: list[str]) -> None:
    run = resolve({"type": "task", "commands": ["x ${{ run.args }}"]}, arguments=arguments)
    assert shlex.split(run.commands[0]) == ["x", *arguments]


def test_without_arguments_nothing_is_left() -> None:
    assert resolve({"type": "task", "commands": ["x ${{ run.args }}!"]}).commands == ("x !",)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("echo $HOME ${A} $(b) $((1+1))", "echo $HOME ${A} $(b) $((1+1))"),
        ("echo $$${A}", "echo $${A}"),
        ("kill $$", "kill $"),
        ("$$$$", "$$"),
        ("$${{ x }}", "${{ x }}"),
        ("a } b }} c", "a } b }} c"),
    ],
)
def test_dollars(written: str, meant: str) -> None:
    assert resolve({"type": "task", "commands": [written]}).commands == (meant,)
    assert resolve({"type": "task", "commands": ["x"], "env": {"A": written}}).env == {"A": meant}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("${{ env.A }}", "write $A"),
        ("${{ secrets.a }}", "not supported yet"),
        ("${{ run.name }}", "not known"),
        ("${{ groups[0].nodes[0].IP_ADDRESS }}", "groups are not supported"),
        ("${{ args }}", "not a name of the form a.b"),
        ("${{ a.b.c }}", "not a name of the form a.b"),
        ("${{ }}", "not a name of the form a.b"),
        ("${{ run.args", "without its }}"),
    ],
)
def test_what_a_command_cannot_refer_to(text: str, words: str) -> None:
    (error,) = mistakes({"type": "task", "commands": ["x", f"echo {text}"]})
    assert error.path == "commands[1]"
    assert words in f"{error.message} {error.hint}"


def test_env_values_cannot_refer_to_anything_yet() -> None:
    errors = mistakes(
        {"type": "task", "commands": ["x"], "env": ["A=${{ secrets.a }}", "B=${{ run.args }}", "C=${{ x"]}
    )
    assert [error.path for error in errors] == ["env[0]", "env[1]", "env[2]"]


def test_a_registry_login_takes_its_parts_from_the_environment() -> None:
    run = resolve(
        {
            "type": "task",
            "image": "i",
            "env": ["USER_NAME=me", "PASS"],
            "registry_auth": {"username": "x-${{ env.USER_NAME }}", "password": "${{ env.PASS }}"},
        },
        sealed={"PASS": "Ym94"},
    )
    assert run.registry_auth == RegistryAuth(username="x-me", password=Sealed(sealed="Ym94"))


@pytest.mark.parametrize(
    ("password", "words"),
    [
        ("${{ env.NONE }}", "env does not have"),
        ("a${{ env.PASS }}", "mixes"),
        ("${{ secrets.p }}", "not supported yet"),
    ],
)
def test_what_a_registry_login_cannot_be(password: str, words: str) -> None:
    config = {
        "type": "task",
        "image": "i",
        "env": ["PASS"],
        "registry_auth": {"username": "u", "password": password},
    }
    (error,) = mistakes(config, sealed={"PASS": "Ym94"})
    assert error.path == "registry_auth.password"
    assert words in error.message


@given(st.text())
def test_any_text_is_either_read_or_refused(text: str) -> None:
    try:
        pieces = interpolate(text, lambda namespace, name: f"<{namespace}.{name}>")
    except BadReference as bad:
        assert "${{" in text
        assert bad.message
    else:
        if "$$" not in text and "${{" not in text:
            assert "".join(pieces) == text


@given(st.text())
def test_doubling_every_dollar_gives_the_text_itself(text: str) -> None:
    pieces: list[str] = interpolate(text.replace("$", "$$"), lambda namespace, name: "?")
    assert "".join(pieces) == text
