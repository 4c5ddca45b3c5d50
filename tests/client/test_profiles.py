"""Which profile holds: none, the one asked for, or the default one, of the files here and at home."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from perdure.client.profiles import InvalidProfiles, Profile, UnreadableProfiles, chosen, names
from perdure.model.errors import FieldError, InvalidConfiguration, NotFound, UserError

HERE = """\
profiles:
  - name: small
    max_price: 1
  - name: large
    default: true
    max_duration: off
"""

Choose = Callable[..., Profile | None]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    folder = tmp_path / "here"
    (folder / ".perdure").mkdir(parents=True)
    return folder


@pytest.fixture
def choose(here: Path, tmp_path: Path) -> Choose:
    """``chosen`` in that folder, with nothing else around."""

    def choose(asked: str | None = None, *, none: bool = False, **environ: str) -> Profile | None:
        return chosen(asked, none=none, folder=here, home=tmp_path / "home", environ=environ)

    return choose


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def name_of(profile: Profile | None) -> str | None:
    return None if profile is None else profile.name


def test_without_files_there_is_none(choose: Choose):
    assert choose() is None


def test_the_default_one_holds_unless_another_is_asked_for(choose: Choose, here: Path):
    write(here / ".perdure/profiles.yml", HERE)
    assert name_of(choose()) == "large"
    assert name_of(choose("small")) == "small"
    assert name_of(choose(PERDURE_PROFILE="small")) == "small"
    assert name_of(choose(DSTACK_PROFILE="small")) == "small"
    assert name_of(choose("large", PERDURE_PROFILE="small")) == "large"
    assert name_of(choose(PERDURE_PROFILE="small", DSTACK_PROFILE="large")) == "small"


def test_none_is_wanted_more_than_any_but_one_that_is_asked_for(choose: Choose, here: Path):
    write(here / ".perdure/profiles.yml", HERE)
    assert choose(none=True, PERDURE_PROFILE="small") is None
    assert choose(PERDURE_NO_PROFILE="1", PERDURE_PROFILE="small") is None
    assert choose(DSTACK_NO_PROFILE="true") is None
    assert name_of(choose("small", PERDURE_NO_PROFILE="1")) == "small"
    assert name_of(choose(PERDURE_NO_PROFILE="0")) == "large"


def test_the_files_are_asked_in_order_and_the_first_that_has_it_wins(choose: Choose, here: Path, tmp_path: Path):
    def profiles(price: int, default: str = "false") -> str:
        return f"profiles: [{{name: one, default: {default}, max_price: {price}}}]\n"

    places = [here / ".perdure", here / ".dstack", tmp_path / "home/.perdure", tmp_path / "home/.dstack"]
    for price, folder in reversed(list(enumerate(places, start=1))):
        write(folder / "profiles.yaml", profiles(price, "true"))
        for found in (choose("one"), choose()):
            assert found is not None
            assert found.mapping["max_price"] == price
    write(places[0] / "profiles.yml", profiles(9, "yes"))
    found = choose()
    assert found is not None
    assert (found.mapping["max_price"], found.source) == (9, ".perdure/profiles.yml")


def test_of_two_defaults_the_first_holds(choose: Choose, here: Path):
    write(here / ".dstack/profiles.yml", "profiles: [{name: a, default: yes}, {name: b, default: true}]\n")
    assert name_of(choose()) == "a"


def test_a_profile_is_the_mapping_as_it_was_written(choose: Choose, here: Path):
    write(here / ".perdure/profiles.yml", HERE)
    found = choose()
    assert found is not None
    assert found.mapping == {"name": "large", "default": True, "max_duration": "off"}
    error = found.locate(FieldError(path="max_duration", message="is odd", layer="profile"))
    assert (error.path, error.line, error.column) == ("max_duration", 6, 19)


def test_an_unknown_name_is_told_with_the_nearest(choose: Choose, here: Path):
    with pytest.raises(NotFound, match="there is no profile 'large'") as caught:
        choose("large")
    assert ".perdure/profiles.yml" in (caught.value.hint or "")
    write(here / ".perdure/profiles.yml", HERE)
    with pytest.raises(NotFound) as caught:
        choose("lrge")
    assert caught.value.hint == "did you mean large?"
    with pytest.raises(NotFound) as caught:
        choose(PERDURE_PROFILE="zzz")
    assert caught.value.hint == "there are small, large"


def test_a_name_that_is_in_two_files_is_listed_once(choose: Choose, here: Path, tmp_path: Path):
    write(here / ".perdure/profiles.yml", "profiles: [{name: small}, {name: large}]\n")
    write(tmp_path / "home/.dstack/profiles.yml", "profiles: [{name: small}]\n")
    with pytest.raises(NotFound) as caught:
        choose("zzz")
    assert caught.value.hint == "there are small, large"
    assert names(here, tmp_path / "home") == ["small", "large"]


def test_a_file_that_is_wrong_is_told_only_when_it_is_needed(choose: Choose, here: Path, tmp_path: Path):
    write(here / ".perdure/profiles.yml", HERE)
    write(tmp_path / "home/.dstack/profiles.yml", "profiles:\n  - max_price: -1\n    image: x\n")
    assert name_of(choose()) == "large"
    with pytest.raises(InvalidConfiguration) as caught:
        choose("other")
    assert caught.value.source == str(tmp_path / "home/.dstack/profiles.yml")
    assert [(error.path, error.line) for error in caught.value.errors] == [
        ("profiles[0].max_price", 2),
        ("profiles[0].image", 3),
    ]
    assert choose(none=True) is None


def test_a_file_that_cannot_be_read_is_told(choose: Choose, here: Path):
    (here / ".perdure/profiles.yml").mkdir()
    with pytest.raises(UserError, match="cannot be read") as caught:
        choose()
    assert caught.value.hint == "--no-profile goes without"


def test_all_names_that_can_be_asked_for(here: Path, tmp_path: Path):
    write(here / ".perdure/profiles.yml", HERE)
    write(tmp_path / "home/.dstack/profiles.yml", "profiles: [{name: mine}]\n")
    assert names(here, tmp_path / "home") == ["small", "large", "mine"]


@pytest.mark.parametrize("what", ["pipe", "device", "folder"])
def test_what_is_not_a_file_is_neither_read_nor_waited_for(choose: Choose, here: Path, what: str):
    path = here / ".perdure/profiles.yml"
    match what:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case _:
            path.mkdir()
    with pytest.raises(UnreadableProfiles, match=r"^\.perdure/profiles\.yml cannot be read: ") as refused:
        choose()
    assert refused.value.hint == "--no-profile goes without"


@pytest.mark.parametrize("text", ["profiles: [", "profiles: [{name: a, max_price: x}]\n"])
def test_what_is_wrong_keeps_the_text_that_was_read(choose: Choose, here: Path, text: str):
    path = here / ".perdure/profiles.yml"
    write(path, text)
    with pytest.raises(InvalidProfiles) as refused:
        choose()
    path.unlink()
    assert refused.value.text == text


def test_the_profiles_at_home_hold_in_a_folder_that_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write(tmp_path / "home/.perdure/profiles.yml", HERE)
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert name_of(chosen(home=tmp_path / "home", environ={})) == "large"
