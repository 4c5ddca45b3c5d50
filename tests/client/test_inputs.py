"""Values from the user's machine: found, or told missing; and readable only for the worker."""

from __future__ import annotations

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.public import PrivateKey

from activities.seal import unsealed
from perdure.client.inputs import above, environment, sealed
from perdure.client.naming import random_name
from perdure.model.errors import InvalidConfiguration, UserError
from perdure.model.ids import RESOURCE_NAME
from perdure.spec.effective import Sealed
from tests.spec.support import resolve


def test_names_listed_without_a_value_are_taken_from_the_environment():
    configuration = {"env": ["TOKEN", "PLAIN=1", "EMPTY="]}
    assert environment(configuration, environ={"TOKEN": "t", "PLAIN": "not this", "OTHER": "x"}) == {"TOKEN": "t"}


def test_the_command_line_comes_first():
    values = environment({"env": ["TOKEN"]}, ["TOKEN=given", "MORE", "EMPTY="], {"TOKEN": "t", "MORE": "m"})
    assert values == {"TOKEN": "given", "MORE": "m", "EMPTY": ""}


def test_a_value_may_hold_anything():
    assert environment({}, ["A=b=c\nd ${{ x }}"], {}) == {"A": "b=c\nd ${{ x }}"}


def test_a_mapping_leaves_values_to_this_machine_by_key():
    configuration = {"env": {"TOKEN": {"key": "TOKEN"}, "PLAIN": "1", "OTHER": {"key": "ELSE"}}}
    values = environment(configuration, environ={"TOKEN": "t", "PLAIN": "not this", "ELSE": "x"})
    assert values == {"TOKEN": "t", "ELSE": "x"}


def test_what_registry_auth_refers_to_is_taken_along():
    configuration = {
        "env": {"USER_NAME": "me"},
        "registry_auth": {"username": "${{ env.USER_NAME }}", "password": "${{env.PASS}}"},
    }
    assert environment(configuration, environ={"PASS": "p", "USER_NAME": "not this"}) == {"PASS": "p"}


def test_what_probes_refer_to_is_taken_along():
    probe = {"type": "http", "url": "/?key=${{ env.KEY }}", "headers": [{"name": "a", "value": "${{env.HEAD}}"}]}
    configuration = {"probes": [{"type": "http"}, probe | {"body": "$${{ env.NOT }} ${{ env.X"}], "env": ["HEAD=x"]}
    assert environment(configuration, environ={"KEY": "k", "HEAD": "not this"}) == {"KEY": "k"}
    with pytest.raises(InvalidConfiguration) as caught:
        environment(configuration, environ={})
    assert [error.path for error in caught.value.errors] == ["probes[1].url"]


def test_all_that_is_missing_is_told_at_once_with_its_place():
    configuration = {"env": ["A", "B", "C=1"], "registry_auth": {"username": "u", "password": "${{ env.P }}"}}
    with pytest.raises(InvalidConfiguration) as caught:
        environment(configuration, environ={"A": "a"})
    assert [error.path for error in caught.value.errors] == ["env[1]", "registry_auth.password"]
    assert "-e B=VALUE" in (caught.value.errors[0].hint or "")


@pytest.mark.parametrize("item", ["1A=x", "=x", "A B", "", "-e"])
def test_what_is_no_name_of_a_variable_is_refused(item: str):
    with pytest.raises(UserError, match="is not the name of a variable"):
        environment({}, [item], {})


def test_a_name_that_is_set_nowhere_is_refused():
    with pytest.raises(UserError, match="GONE is not set here"):
        environment({}, ["GONE"], {})


@given(st.dictionaries(st.sampled_from(["A", "B"]), st.text(alphabet=st.characters(exclude_categories=["Cs"]))))
def test_only_the_worker_reads_what_is_sealed(values: dict[str, str]):
    key = PrivateKey.generate()
    hidden = sealed(values, b64encode(bytes(key.public_key)).decode())
    assert {name: unsealed(bytes(key), box, name) for name, box in hidden.items()} == values
    for name, box in hidden.items():
        assert len(values[name]) < 4 or values[name] not in box
        with pytest.raises(UserError, match="sealed for another installation"):
            unsealed(bytes(PrivateKey.generate()), box, name)


def test_a_value_that_is_not_text_is_refused_by_name():
    with pytest.raises(UserError, match="ODD is not text"):
        environment({}, ["ODD"], {"ODD": "\udcff"})


def test_a_value_that_no_process_can_be_given_is_refused_by_name():
    assert environment({}, ["BIG=" + "x" * (128 * 1024 - 5)], {})
    with pytest.raises(UserError, match="BIG is 200 KiB"):
        environment({}, ["BIG=" + "x" * 200 * 1024], {})


def test_made_up_names_are_names():
    assert all(RESOURCE_NAME.match(random_name()) for _ in range(100))


def test_a_value_with_a_nul_is_refused_before_it_is_sealed():
    with pytest.raises(UserError, match="A has a NUL character"):
        environment({}, ["A=x\0y"], {})


def test_a_reference_that_is_a_literal_asks_for_nothing():
    login = {"username": "u", "password": "p$${{ env.NOPE }}"}
    assert environment({"registry_auth": login}, environ={}) == {}


def test_what_is_given_stands_above_the_configuration_wherever_else_it_is_asked_for():
    document = {"type": "task", "commands": ["x"], "env": {"A": "lit", "B": {"key": "A"}}}
    values = environment(document, ["A=5"], {"A": "9"})
    run = resolve(document, flags={"env": above(document, ["A=5"])}, sealed=values)
    assert values == {"A": "5"}
    assert run.env == {"A": Sealed(sealed="5"), "B": Sealed(sealed="5")}
    assert resolve(document, sealed=environment(document, [], {"A": "9"})).env == {
        "A": "lit",
        "B": Sealed(sealed="9"),
    }
    assert above(document, ["B=5", "C"]) == above({"env": ["A"]}, ["A=5"]) == above({}, ["A=5"]) == {}


def test_what_is_given_need_not_come_from_where_it_else_would():
    document = {"type": "task", "commands": ["x"], "env": {"B": {"key": "ZZ"}}}
    values = environment(document, ["B=5"], {})
    assert resolve(document, sealed=values).env == {"B": Sealed(sealed="5")}
    assert environment({"env": {"B": {"key": "A"}, "A": {"key": "Z"}}}, environ={"A": "a", "Z": "z"}) == {
        "A": "a",
        "Z": "z",
    }
