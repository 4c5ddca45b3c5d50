"""Names, references, users, tags, schedules, variables, nodes of a fleet: what they mean, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic_core import PydanticCustomError

from perdure.spec.grammar import cron, env, fleets, names
from perdure.spec.models import fleet
from tests.spec.support import refused, value


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (["A=1"], {"A": "1"}),
        (["A=b=c"], {"A": "b=c"}),
        (["A="], {"A": ""}),
        (["A"], {"A": {"key": "A"}}),
        ({"A": 1}, {"A": "1"}),
        ({"A": 1.5}, {"A": "1.5"}),
        ({"A-B": "x"}, {"A-B": "x"}),
        ({"A": {"key": "B"}}, {"A": {"key": "B"}}),
        ([], {}),
    ],
)
def test_environments(written: object, meant: dict[str, object]) -> None:
    assert value(env.Env, written) == meant


@pytest.mark.parametrize(
    "written",
    [
        ["A=1", "A=2"],
        ["1A=2"],
        ["A-B=1"],
        [1],
        [None],
        [{}],
        "A=1",
        None,
        {"A": None},
        {"A": True},
        {"": "x"},
        ["A=\0"],
    ],
)
def test_what_is_no_environment(written: object) -> None:
    assert refused(env.Env, written)


@pytest.mark.parametrize(
    ("grammar", "written", "meant"),
    [
        (names.unix_user, "ubuntu", "ubuntu"),
        (names.unix_user, 1000, "1000"),
        (names.unix_user, "1000:50", "1000:50"),
        (names.shell, "bash", "bash"),
        (names.shell, "/usr/bin/zsh", "/usr/bin/zsh"),
        (names.python, "3.10", "3.10"),
        (names.python, 3.1, "3.10"),
        (names.python, 3.12, "3.12"),
        (names.working_dir, "~/w", "~/w"),
        (names.backend, "ssh", "remote"),
        (cron.cron_list, "15 23 * * *", ("15 23 * * *",)),
        (cron.cron_list, ["0 8 * JAN MON", "0 8 * * 7"], ("0 8 * JAN MON", "0 8 * * 7")),
        (cron.cron_list, " 0  8 * jul * ", ("0 8 * jul *",)),
    ],
)
def test_words(grammar: Callable[[object], object], written: object, meant: object) -> None:
    assert grammar(written) == meant


@pytest.mark.parametrize(
    ("grammar", "written"),
    [
        (names.unix_user, "1000:"),
        (names.unix_user, "a:b:c"),
        (names.unix_user, -1),
        (names.unix_user, ""),
        (names.shell, "zsh"),
        (names.shell, "usr/bin/zsh"),
        (names.python, 3),
        (names.python, "3.8"),
        (names.python, 3.15),
        (names.python, "3.1"),
        (names.working_dir, "."),
        (names.working_dir, ""),
        (names.backend, "foo"),
        (names.resource_name, "My_Run"),
        (names.resource_name, "-a"),
        (names.resource_name, "hello\n"),
        (names.resource_name, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnop"),
        (cron.cron_list, []),
        (cron.cron_list, "0 8 * *"),
        (cron.cron_list, "0 8 * * * *"),
        (cron.cron_list, "61 * * * *"),
        (cron.cron_list, "@daily"),
        (cron.cron_list, "0 0 L * *"),
        (cron.cron_list, "0 0 LW * *"),
        (cron.cron_list, "0 0 * * 5L"),
        (cron.cron_list, "0 0 * * fri#2"),
        (cron.cron_list, "0 0 2nd fri * *"),
        (cron.cron_list, "0 0 last * *"),
        (cron.cron_list, "0 0 30 2 *"),
        (cron.cron_list, ["0 0 * * *"] * 101),
        (cron.cron_list, 5),
        (fleets.private_address, "8.8.8.8"),
        (fleets.private_address, "foo"),
        (fleets.private_network, "8.8.8.0/24"),
        (fleets.read_blocks, 0),
        (fleets.read_blocks, "foo"),
    ],
)
def test_wrong_words(grammar: Callable[[Any], object], written: object) -> None:
    with pytest.raises(PydanticCustomError):
        grammar(written)


@pytest.mark.parametrize("tags", [{"a b": "c"}, {"a": "x!"}, {"a": ["x"]}, {"a": None}, [], {"": "x"}])
def test_what_are_no_tags(tags: object) -> None:
    assert refused(names.Tags, tags)


def test_references_name_a_project_or_do_not() -> None:
    assert value(names.Ref, "p/a") == {"name": "a", "project": "p"}
    assert value(names.Ref, "a") == {"name": "a", "project": None}
    for written in ("", "a/b/c", "/a", "a/", 1, None, {"name": "a/b"}, {"name": ""}, {"name": "a", "project": ""}):
        assert refused(names.Ref, written)


@pytest.mark.parametrize(
    ("written", "low", "target", "high"),
    [
        (2, 2, None, 2),
        ("0..2", 0, None, 2),
        ("2..", 2, None, None),
        ("..2", 0, None, 2),
        ({}, 0, None, None),
        ({"min": 1, "target": 2, "max": 3}, 1, 2, 3),
        ({"min": 0, "target": 2}, 0, 2, None),
    ],
)
def test_nodes_of_a_fleet(written: object, low: int, target: int | None, high: int | None) -> None:
    found = fleet.FleetConfiguration.model_validate({"type": "fleet", "nodes": written}).nodes
    assert found is not None
    assert (found.min, found.target, found.max) == (low, target, high)


@pytest.mark.parametrize(
    "written",
    [
        {"min": 3, "max": 2},
        {"min": 2, "target": 1},
        {"max": 1, "target": 2},
        {"max": 0, "target": 1},
        "..",
        -1,
        "x",
    ],
)
def test_what_are_no_nodes_of_a_fleet(written: object) -> None:
    assert refused(fleet.FleetConfiguration, {"type": "fleet", "nodes": written})
