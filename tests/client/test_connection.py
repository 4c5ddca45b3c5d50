"""Where Temporal is looked for, and what is said when it is not there."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from perdure.client.client import user_name
from perdure.client.connection import Place, connect, find_temporal
from perdure.model.errors import ControlPlaneError


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment with nothing in it but its folders."""
    return {
        "HOME": str(tmp_path),
        "PERDURE_HOME": str(tmp_path / "perdure"),
        "TEMPORAL_CONFIG_FILE": str(tmp_path / "temporal.toml"),
    }


def up(environ: dict[str, str]) -> Path:
    folder = Path(environ["PERDURE_HOME"])
    folder.mkdir()
    stack = {
        "version": 1,
        "temporal": "127.0.0.1:1111",
        "namespace": "ours",
        "ui": "http://ui",
        "pids": {"worker": 1},
    }
    (folder / "stack.json").write_text(json.dumps(stack))
    return folder / "stack.json"


def profile(environ: dict[str, str], name: str = "default", port: int = 2222) -> None:
    with Path(environ["TEMPORAL_CONFIG_FILE"]).open("a") as file:
        file.write(f'[profile.{name}]\naddress = "127.0.0.1:{port}"\nnamespace = "theirs"\n')


def test_the_embedded_stack_is_found_by_its_file(home: dict[str, str]):
    path = up(home)
    assert find_temporal(home) == Place("127.0.0.1:1111", "ours", str(path), ui="http://ui", stack=path)


def test_the_environment_comes_before_the_embedded_stack(home: dict[str, str]):
    up(home)
    place = find_temporal(home | {"TEMPORAL_ADDRESS": "127.0.0.1:3333", "TEMPORAL_NAMESPACE": "mine"})
    assert (place.address, place.namespace, place.source) == ("127.0.0.1:3333", "mine", "TEMPORAL_ADDRESS")


def test_a_named_profile_comes_before_the_embedded_stack_and_the_default_one_after(home: dict[str, str]):
    profile(home)
    assert find_temporal(home).address == "127.0.0.1:2222"
    assert find_temporal(home).namespace == "theirs"
    up(home)
    profile(home, "work", 4444)
    assert find_temporal(home).address == "127.0.0.1:1111"
    assert find_temporal(home | {"TEMPORAL_PROFILE": "work"}).address == "127.0.0.1:4444"


def test_a_namespace_alone_is_of_the_embedded_stack(home: dict[str, str]):
    up(home)
    place = find_temporal(home | {"TEMPORAL_NAMESPACE": "other"})
    assert (place.address, place.namespace) == ("127.0.0.1:1111", "other")


def test_an_api_key_turns_encryption_on(home: dict[str, str]):
    place = find_temporal(home | {"TEMPORAL_ADDRESS": "cloud:7233", "TEMPORAL_API_KEY": "key"})
    assert place.options["api_key"] == "key"
    assert place.options["tls"]


def test_nothing_found_says_where_it_looked(home: dict[str, str]):
    with pytest.raises(ControlPlaneError) as caught:
        find_temporal(home)
    assert "TEMPORAL_ADDRESS" in caught.value.message
    assert home["PERDURE_HOME"] in caught.value.message
    assert caught.value.hint and "perdure up" in caught.value.hint


@pytest.mark.parametrize("text", ["{", "[]", '{"version": 1}'])
def test_a_damaged_file_is_named(home: dict[str, str], text: str):
    up(home).write_text(text)
    with pytest.raises(ControlPlaneError, match=r"stack\.json"):
        find_temporal(home)


def test_unreadable_settings_are_told(home: dict[str, str]):
    Path(home["TEMPORAL_CONFIG_FILE"]).write_text("not toml [")
    with pytest.raises(ControlPlaneError, match="settings cannot be read"):
        find_temporal(home)


async def test_an_address_where_nobody_listens_is_named_with_its_source():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ControlPlaneError) as caught:
            await connect(Place(address, "default", "/home/me/.perdure/stack.json"))
    assert address in caught.value.message
    assert "/home/me/.perdure/stack.json" in caught.value.message
    assert caught.value.hint and "perdure up" in caught.value.hint


def test_variables_that_are_not_text_are_in_nobodys_way(monkeypatch: pytest.MonkeyPatch):
    environ = {"PWD": "/d\udcff", "USER": "\udcff", "TEMPORAL_ADDRESS": "there:7233"}
    assert find_temporal(environ).address == "there:7233"
    monkeypatch.setenv("LOGNAME", "\udcff")
    assert user_name() == r"\xff"
