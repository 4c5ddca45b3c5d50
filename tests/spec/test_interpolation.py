"""``${{ … }}``: what stands for what, where, and what is refused."""

from __future__ import annotations

import shlex
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure import spec
from perdure.model.errors import FieldError
from perdure.spec.effective import RegistryAuth, Sealed, SecretRef, Value, joined, pieces_of, secrets_of
from perdure.spec.interpolation import Address, BadReference, Named, pieces
from perdure.spec.reading import read
from tests.spec.support import mistakes, resolve

LOGIN = {"type": "task", "image": "i", "env": ["PASS"]}


def wrong(config: dict[str, Any]) -> list[FieldError]:
    """What can never be right in a configuration of any kind."""
    return read(config).invalid


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


def test_arguments_are_not_read_for_references() -> None:
    run = resolve({"type": "task", "commands": ["x ${{ run.args }}"]}, arguments=("$$", "${{ secrets.a }}"))
    assert shlex.split(run.commands[0]) == ["x", "$$", "${{ secrets.a }}"]


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
def test_dollars_are_halved_once_everywhere(written: str, meant: str) -> None:
    assert resolve({"type": "task", "commands": [written]}).commands == (meant,)
    assert resolve({"type": "task", "commands": ["x"], "env": {"A": written}}).env == {"A": meant}
    login = resolve(LOGIN | {"registry_auth": {"username": "u", "password": written}}, sealed={"PASS": "eA=="})
    assert login.registry_auth == RegistryAuth(username="u", password=meant)


def test_a_plan_names_every_place_in_which_a_dollar_is_doubled() -> None:
    config = {"type": "task", "commands": ["x", "echo $$"], "env": ["A=1", "P=a$$b", "Q=$${{ kept }}"]}
    (warning,) = read(config).warnings
    assert "env[1], commands[1]" in warning
    assert "env[2]" not in warning
    assert "$$$$" in warning


def test_a_warning_about_many_places_stays_short() -> None:
    (warning,) = read({"type": "task", "commands": ["echo $$"] * 1000}).warnings
    assert "and 995 more" in warning
    assert len(warning) < 300


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("${{ env.A }}", "write $A"),
        ("${{ secrets.my-key }}", "env: [MY_KEY=${{ secrets.my-key }}], and write $MY_KEY here"),
        ("${{ run.name }}", "there is run.args"),
        ("${{ dstack.node_rank }}", "not known in a command"),
        ("${{ groups[0].nodes[0].IP_ADDRESS }}", "there are no groups"),
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


def test_every_wrong_reference_is_told_at_once_and_where_it_is_written() -> None:
    config = {
        "type": "task",
        "image": "i",
        "commands": ["${{ x }}", "y", "${{ run.name }}"],
        "env": ["A=${{ secrets.a }}", "B=${{ run.args }}", "C=${{ x"],
        "registry_auth": {"username": "${{ run.args }}", "password": "${{ env.Z }}"},
    }
    paths = {error.path for error in mistakes(config)}
    assert paths == {
        "commands[0]",
        "commands[2]",
        "env[1]",
        "env[2]",
        "registry_auth.username",
        "registry_auth.password",
    }


def test_a_wrong_reference_is_told_with_all_other_mistakes() -> None:
    config = {
        "type": "task",
        "commands": ["${{ run.name }}"],
        "env": ["A=1", "B=${{ run.args }}"],
        "nodes": "many",
        "gpus": 1,
    }
    assert {error.path for error in mistakes(config)} == {"commands[0]", "env[1]", "nodes", "gpus"}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("${{ secrets.a }}", (SecretRef(secret="a"),)),
        ("${{secrets.my-key}}", (SecretRef(secret="my-key"),)),
        ("${{ secrets.1_b }}", (SecretRef(secret="1_b"),)),
        ("Bearer ${{ secrets.a }}!", ("Bearer ", SecretRef(secret="a"), "!")),
        ("$$${{ secrets.a }}${{ secrets.b }}", ("$", SecretRef(secret="a"), SecretRef(secret="b"))),
        ("$${{ secrets.a }}", "${{ secrets.a }}"),
    ],
)
def test_a_secret_stays_a_reference(written: str, value: Value) -> None:
    run = resolve({"type": "task", "commands": ["x"], "env": {"A": written}})
    assert run.env == {"A": value}
    assert secrets_of(run) == {piece.secret for piece in value if isinstance(piece, SecretRef)}


@given(st.from_regex(r"[A-Za-z0-9_-]{1,200}", fullmatch=True))
def test_every_name_a_secret_can_have_may_be_referred_to(name: str) -> None:
    assert pieces(f"${{{{ secrets.{name} }}}}") == [Named("secrets", name)]


def test_a_registry_login_takes_its_parts_from_secrets_and_the_environment() -> None:
    run = resolve(
        {
            "type": "task",
            "image": "i",
            "env": ["USER_NAME=me", "PASS", "TOKEN=${{ secrets.t }}"],
            "registry_auth": {"username": "x-${{ env.USER_NAME }}", "password": "${{ env.PASS }}"},
        },
        sealed={"PASS": "Ym94"},
    )
    assert run.registry_auth == RegistryAuth(username="x-me", password=Sealed(sealed="Ym94"))
    mixed = resolve(
        LOGIN | {"registry_auth": {"username": "${{ secrets.user }}", "password": "a${{ env.PASS }}"}},
        sealed={"PASS": "Ym94"},
    )
    assert mixed.registry_auth == RegistryAuth(
        username=(SecretRef(secret="user"),), password=("a", Sealed(sealed="Ym94"))
    )
    assert secrets_of(mixed) == {"user"}


def test_a_registry_login_through_a_variable_that_is_a_secret() -> None:
    run = resolve(
        {
            "type": "task",
            "image": "i",
            "env": ["TOKEN=${{ secrets.t }}"],
            "registry_auth": {"username": "u", "password": "${{ env.TOKEN }}"},
        }
    )
    assert run.registry_auth == RegistryAuth(username="u", password=(SecretRef(secret="t"),))


def test_a_registry_login_cannot_name_a_variable_that_is_not_there() -> None:
    (error,) = mistakes(
        LOGIN | {"registry_auth": {"username": "u", "password": "${{ env.NONE }}"}}, sealed={"PASS": "eA=="}
    )
    assert (error.path, error.hint) == ("registry_auth.password", "add `- NONE` to env")


def groups(command: str, **second: Any) -> dict[str, Any]:
    return {"type": "task", "groups": [{"commands": [command]}, {"commands": ["x"], "nodes": 2, **second}]}


@pytest.mark.parametrize("address", ["groups[0].nodes[0].IP_ADDRESS", "groups[1].nodes[1].IP_ADDRESS"])
def test_a_command_knows_the_addresses_of_all_nodes(address: str) -> None:
    assert wrong(groups(f"ping ${{{{ {address} }}}}")) == []


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("groups[2].nodes[0].IP_ADDRESS", "the last group is groups[1]"),
        ("groups[1].nodes[2].IP_ADDRESS", "groups[1] has 2 nodes"),
        ("groups[0].nodes[1].IP_ADDRESS", "groups[0] has 1 node"),
        ("groups[0].replicas[0].IP_ADDRESS", "the groups here have nodes"),
        ("groups[0].nodes[0].IP", "not an address"),
        ("groups[a].nodes[0].IP_ADDRESS", "not an address"),
        ("groups[-1].nodes[0].IP_ADDRESS", "not an address"),
        ("groups[99999999999999999999].nodes[0].IP_ADDRESS", "not an address"),
    ],
)
def test_an_address_that_no_node_has(address: str, words: str) -> None:
    (error,) = wrong(groups(f"ping ${{{{ {address} }}}}"))
    assert error.path == "groups[0].commands[0]"
    assert words in error.message


def test_an_address_is_known_to_commands_only() -> None:
    (error,) = wrong(groups("x") | {"env": ["A=${{ groups[0].nodes[0].IP_ADDRESS }}"]})
    assert (error.path, "only commands" in error.message) == ("env[0]", True)


def test_a_replica_that_may_not_be_there_has_no_address() -> None:
    group = {"commands": ["${{ groups[0].replicas[0].IP_ADDRESS }}"]}
    scaled = {"count": "0..2", "scaling": {"metric": "rps", "target": 1}}
    assert wrong({"type": "service", "port": 80, "replicas": [{**group, "count": 1}]}) == []
    (error,) = wrong({"type": "service", "port": 80, "replicas": [{**group, **scaled}]})
    assert (error.path, "at least 0 replicas" in error.message) == ("replicas[0].commands[0]", True)


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"type": "dev-environment", "init": ["${{ run.args }}"]}, "init[0]"),
        (
            {"type": "task", "image": "i", "volumes": [{"name": "v-${{ run.args }}", "path": "/v"}]},
            "volumes[0].name",
        ),
        (
            {"type": "task", "image": "i", "volumes": [{"name": ["a", "${{ env.A }}"], "path": "/v"}]},
            "volumes[0].name[1]",
        ),
        (
            {
                "type": "service",
                "port": 80,
                "image": "i",
                "probes": [{"type": "http", "headers": [{"name": "a", "value": "${{ secrets.x }}"}]}],
            },
            "probes[0].headers[0].value",
        ),
        (
            {"type": "gateway", "name": "g1", "backend": "aws", "region": "r", "domain": "${{ run.name }}.x.com"},
            "domain",
        ),
    ],
)
def test_what_other_kinds_cannot_refer_to(config: dict[str, Any], path: str) -> None:
    assert [error.path for error in wrong(config)] == [path]


@pytest.mark.parametrize(
    "config",
    [
        {"type": "dev-environment", "init": ["echo $$${HOME}"]},
        {"type": "task", "image": "i", "volumes": [{"name": "v-${{ dstack.node_rank }}", "path": "/v"}]},
        {"type": "task", "image": "i", "volumes": ["v-${{ dstack.job_num }}:/v"]},
        {
            "type": "service",
            "port": 80,
            "image": "i",
            "env": ["KEY"],
            "probes": [{"type": "http", "url": "/${{ env.KEY }}", "method": "post", "body": "${{ env.KEY }}"}],
        },
        {
            "type": "gateway",
            "name": "g1",
            "backend": "aws",
            "region": "r",
            "domain": "${{ run.project_name }}.x.com",
        },
    ],
)
def test_what_other_kinds_can_refer_to(config: dict[str, Any]) -> None:
    assert wrong(config) == []


def test_a_reference_in_a_published_configuration_is_never_refused() -> None:
    from tests.spec.support import fixtures

    for file in sorted((fixtures() / "configs").glob("*.yml")):
        document = spec.load_yaml(file.read_bytes(), file.name)
        if "${{" in file.read_text():
            assert [error.message for error in read(document).invalid if "refers to" in error.message] == []


@given(st.text())
def test_any_text_is_either_read_or_refused(text: str) -> None:
    try:
        found = pieces(text)
    except BadReference as bad:
        assert "${{" in text
        assert bad.message
    else:
        if "$$" not in text and "${{" not in text:
            assert "".join(map(str, found)) == text


@given(st.text())
def test_doubling_every_dollar_gives_the_text_itself(text: str) -> None:
    assert "".join(map(str, pieces(text.replace("$", "$$")))) == text


@given(
    st.lists(
        st.sampled_from(["a", " ", "}", "{", Named("secrets", "x-1"), Named("run", "args"), Address(0, "nodes", 1)])
    )
)
def test_what_is_written_is_what_is_read(parts: list[str | Named | Address]) -> None:
    text = "".join(part if isinstance(part, str) else f"${{{{ {part} }}}}" for part in parts)
    expected: list[str | Named | Address] = []
    for part in parts:
        if isinstance(part, str) and expected and isinstance(expected[-1], str):
            expected[-1] += part
        else:
            expected.append(part)
    assert pieces(text) == expected


def test_sizes_are_counted_before_anything_is_put_together() -> None:
    login = {"username": "u", "password": "${{ env.A }}" * 4}
    run: dict[str, Any] = {"type": "task", "image": "i", "env": {"A": "y" * 30_000}, "registry_auth": login}
    assert resolve(run).registry_auth == RegistryAuth(username="u", password="y" * 120_000)
    too_long = run | {"registry_auth": login | {"password": "${{ env.A }}" * 4_000}}
    assert [(error.path, error.message) for error in mistakes(too_long)] == [
        ("registry_auth.password", "is larger than 128 KiB, the most that is sent to a registry"),
        ("registry_auth", "has 4000 references: at most 1000 are allowed"),
    ]
    commands = {"type": "task", "image": "i", "entrypoint": "e", "commands": ["${{ run.args }}"] * 9_000}
    before = tracemalloc_peak(lambda: mistakes(commands, arguments=("x",)))
    found: list[FieldError] = []
    after = tracemalloc_peak(lambda: found.extend(mistakes(commands, arguments=("x" * 120_000,))))
    assert [(error.path, error.message) for error in found] == [
        ("commands", "are larger than 1 MiB, the most a process can be given")
    ]
    assert after < before + 2**21


def tracemalloc_peak(do: Callable[[], object]) -> int:
    """Bytes of memory that it takes."""
    tracemalloc.start()
    try:
        do()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@given(
    st.lists(
        st.text(max_size=2) | st.builds(SecretRef, secret=st.just("s")) | st.builds(Sealed, sealed=st.just("b"))
    )
)
def test_pieces_are_joined_where_they_can_be(pieces: list[str | SecretRef | Sealed]) -> None:
    found = pieces_of(joined(pieces))
    assert all(found) or found == ("",)
    assert not any(isinstance(one, str) and isinstance(other, str) for one, other in pairwise(found))
    told = ["".join(str(one) for one in some) for some in (found, pieces)]
    assert told[0] == told[1]


STRAY = "/${{ secrets.x }}"
REPLICAS = {"replicas": [{"count": 1, "image": STRAY, "commands": ["${{ run.args }}"]}]}


@pytest.mark.parametrize(
    ("kind", "fields", "path"),
    [
        *(("task", {name: STRAY}, name) for name in ("image", "entrypoint", "user", "shell", "working_dir")),
        *(("task", {name: ["a", STRAY]}, f"{name}[1]") for name in ("files", "regions", "instance_types")),
        ("task", {"image": "a$${{ b }}"}, "image"),
        ("task", {"image": "a${{"}, "image"),
        ("task", {"fleets": ["${{x}}"]}, "fleets[0]"),
        ("task", {"repos": [{"url": "https://h/a", "branch": STRAY}]}, "repos[0]"),
        ("task", {"volumes": [f"v-${{{{ dstack.job_num }}}}:{STRAY}"]}, "volumes[0]"),
        ("task", {"notify": [{"url": "https://h/${{x}}"}]}, "notify[0].url"),
        ("service", {"model": STRAY}, "model"),
        ("service", {"image": None} | REPLICAS, "replicas[0].image"),
        ("dev-environment", {"setup": [STRAY]}, "setup[0]"),
        ("gateway", {"backend": "aws", "region": STRAY}, "region"),
        ("fleet", {"ssh_config": {"identity_file": "k", "user": STRAY, "hosts": ["h"]}}, "ssh_config.user"),
    ],
)
def test_a_reference_is_refused_where_none_is_resolved(kind: str, fields: dict[str, Any], path: str) -> None:
    least = {"task": {"commands": ["x"]}, "service": {"image": "i", "port": 80}}
    (error,) = wrong({"type": kind} | least.get(kind, {}) | fields)
    assert (error.path, error.message) == (path, "has a ${{ in it, and no reference is resolved here")
