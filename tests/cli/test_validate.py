"""``perdure validate``: every mistake with its line, exit codes for scripts, and the same as JSON."""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from perdure.cli import validate
from perdure.cli.errors import LONGEST, snippet
from tests.cli.conftest import Program

GOOD = "type: task\nname: xx\ncommands: [echo]\n"


@pytest.fixture(autouse=True)
def at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A home folder without profiles."""
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """good.yml, bad.yml, text.yml, latin.yml, folder/"""
    (tmp_path / "good.yml").write_text(GOOD)
    (tmp_path / "bad.yml").write_text("type: task\ncommandz: [a]\nnodes: x\n")
    (tmp_path / "text.yml").write_text("type: [\n")
    (tmp_path / "latin.yml").write_bytes(b"type: task\nname: \xe4\n")
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("good.yml", 0),
        ("bad.yml", 1),
        ("text.yml", 1),
        ("latin.yml", 1),
        ("gone.yml", 2),
        ("folder", 2),
        ("good.yml bad.yml", 1),
        ("gone.yml bad.yml good.yml", 2),
        ("a\0b", 2),
    ],
)
def test_the_exit_code_is_that_of_the_worst_file(perdure: Program, files: Path, arguments: str, code: int):
    for more in ([], ["--json"]):
        ended = perdure("validate", *more, *arguments.split(" "))
        assert ended.code == code
        assert "Traceback" not in ended.err


@contextmanager
def nobody() -> Iterator[None]:
    """As an ordinary user: root may read everything."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


def test_a_file_that_may_not_be_read_is_unreadable(perdure: Program, files: Path):
    with nobody():
        ended = perdure("validate", "/etc/shadow")
    assert ended.code == 2
    assert "/etc/shadow cannot be read: Permission denied" in ended.err


def test_a_file_that_fails_while_it_is_read_is_unreadable(perdure: Program, files: Path):
    assert perdure("validate", "/proc/self/mem").code == 2


def test_each_file_is_told_of_in_order(perdure: Program, files: Path):
    said = perdure("validate", "good.yml", "bad.yml", "gone.yml").err
    words = ("good.yml is valid.", "bad.yml is not valid: ", "bad.yml:2:1: commandz", "there is no file gone.yml")
    places = [said.index(word) for word in words]
    assert places == sorted(places)


def test_json_says_the_same(perdure: Program, files: Path):
    ended = perdure("validate", "--json", "good.yml", "bad.yml", "gone.yml", "-", input="type: service\n")
    assert ended.err == ""
    verdicts = json.loads(ended.out)["files"]
    assert [(one["file"], one["verdict"], one["kind"]) for one in verdicts] == [
        ("good.yml", "valid", "task"),
        ("bad.yml", "invalid", "task"),
        ("gone.yml", "unreadable", ""),
        ("<stdin>", "invalid", "service"),
    ]
    first = verdicts[1]["errors"][0]
    assert (first["file"], first["line"], first["column"], first["path"]) == ("bad.yml", 2, 1, "commandz")
    assert first["hint"] == "did you mean commands?"


@pytest.mark.parametrize(
    "text",
    [
        "type: fleet\nname: pool\nnodes: 0..2\n",
        "type: volume\nname: data\nbackend: aws\nregion: eu-west-1\nsize: 100GB\n",
        "type: gateway\nname: gate\nbackend: aws\nregion: eu-west-1\ndomain: example.com\n",
        "type: dev-environment\nide: vscode\n",
        "profiles:\n  - name: large\n    max_price: 3\n",
    ],
)
def test_every_kind_of_file_is_checked(perdure: Program, text: str):
    ended = perdure("validate", "-", input=text)
    assert (ended.code, ended.err.startswith("<stdin> is valid.")) == (0, True)
    ended = perdure("validate", "-", input=text + "nope: 1\n")
    assert (ended.code, "nope: is not a key known here" in ended.err) == (1, True)


def test_what_this_version_cannot_do_is_a_note_with_its_line(perdure: Program):
    ended = perdure("validate", "-", input=GOOD + "notify:\n  - url: https://example.com\n    on: [done]\n")
    assert ended.code == 0
    assert ended.err.startswith("<stdin> is valid. This version cannot run it yet:\n  <stdin>:5:3: notify: ")


def test_a_profile_is_checked_together_with_each_file(perdure: Program, files: Path):
    (files / ".perdure").mkdir()
    profiles = files / ".perdure/profiles.yml"
    profiles.write_text("profiles:\n  - name: nightly\n    reservation: mine\n")
    told = perdure("validate", "good.yml", "--profile", "nightly")
    assert told.code == 0
    assert "good.yml with profile nightly is valid. This version cannot run it yet:" in told.err
    assert "  .perdure/profiles.yml:3:" in told.err
    assert "nightly" not in perdure("validate", "good.yml").err
    told = perdure("validate", "good.yml", "--profile", "nightli")
    assert (told.code, "did you mean nightly?" in told.err) == (1, True)
    profiles.write_text("profiles:\n  - name: nightly\n    max_price: -1\n")
    told = perdure("validate", "good.yml", "--profile", "nightly")
    assert told.code == 1
    assert ".perdure/profiles.yml:3:16: profiles[0].max_price: " in told.err
    assert "\n  3 │     max_price: -1\n    │                ^^\n" in told.err
    assert "good.yml is valid." in told.err


@pytest.mark.parametrize(
    ("line", "column", "marked"),
    [
        ("  gpuu: 1", 3, "gpuu"),
        ("ports: [80:8000, 'x y', 7]", 18, "'x y'"),
        ("ports: [80:8000, 'x y', 7]", 9, "80:8000"),
        ("name: Typo Name  # why", 7, "Typo Name"),
        ("image: a#b", 8, "a#b"),
        ("a: http://x:1/y", 4, "http://x:1/y"),
        ("a: [", 4, "["),
        ("a:", 3, ""),
        ("- echo", 1, "- echo"),
    ],
)
def test_the_mark_is_under_the_word(line: str, column: int, marked: str):
    above, below = (text.plain for text in snippet(line, 12, column))
    assert above == f"  12 │ {line}"
    assert below == "     │ " + " " * (column - 1) + "^" * max(1, len(marked))


def test_the_mark_is_right_beside_wide_characters_and_tabs():
    above, below = (text.plain for text in snippet("日本:\tbad", 1, 5))
    assert (above, below) == ("  1 │ 日本: bad", "    │       ^^^")


def test_of_a_long_line_what_is_around_the_mistake_is_shown():
    line = "a" * 5000 + " bad " + "b" * 5000
    above, below = (text.plain for text in snippet(line, 1, 5002))
    assert len(above) == LONGEST + len("  1 │ ")
    start = below.index("^")
    assert above[start : start + 3] == "bad"
    assert len(below) <= len(above)


def test_the_password_in_a_url_is_not_shown():
    line = "repos: ['https://me:s3cret@host/a:b:c']"
    above, below = (text.plain for text in snippet(line, 1, 9))
    assert above == "  1 │ repos: ['https://**********host/a:b:c']"
    assert below == "    │ " + " " * 8 + "^" * 30


def test_a_line_is_shown_and_never_obeyed(perdure: Program):
    above, _ = snippet("a: [red]\x1b[2J", 1, 1)
    assert above.plain == "  1 │ a: [red]\\x1b[2J"


@pytest.mark.parametrize("what", ["folder", "pipe"])
def test_profiles_that_cannot_be_read_get_a_verdict(perdure: Program, files: Path, what: str):
    (files / ".perdure").mkdir()
    path = files / ".perdure/profiles.yml"
    path.mkdir() if what == "folder" else os.mkfifo(path)
    ended = perdure("validate", "--json", "good.yml")
    assert ended.code == 2
    verdicts = {one["file"]: one["verdict"] for one in json.loads(ended.out)["files"]}
    assert verdicts == {".perdure/profiles.yml": "unreadable", "good.yml": "valid"}


def test_a_name_that_is_not_text_is_shown(perdure: Program, files: Path):
    (Path(os.fsdecode(os.fsencode(files) + b"/\xff.yml"))).write_text(GOOD)
    names = [os.fsdecode(name) for name in (b"\xff.yml", b"gone-\xff")]
    ended = perdure("validate", "--json", "--", *names)
    assert [one["file"] for one in json.loads(ended.out)["files"]] == [r"\xff.yml", r"gone-\xff"]
    assert ended.code == 2
    assert r"there is no file gone-\xff" in perdure("validate", names[1]).err


def test_in_a_deleted_folder_a_file_is_read_by_its_whole_path(
    perdure: Program, files: Path, monkeypatch: pytest.MonkeyPatch
):
    (files / "gone").mkdir()
    monkeypatch.chdir(files / "gone")
    (files / "gone").rmdir()
    assert perdure("validate", str(files / "good.yml")).code == 0
    ended = perdure("validate", "-", input=GOOD)
    assert (ended.code, ended.err) == (2, "Error: the folder that you are in is deleted\n")


def test_a_pipe_is_read_like_a_file(perdure: Program, files: Path):
    os.mkfifo(files / "pipe")
    writer = Thread(target=(files / "pipe").write_text, args=(GOOD,))
    writer.start()
    assert perdure("validate", "pipe").code == 0
    writer.join()


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_what_was_read_of_a_file_is_let_go_of(
    perdure: Program, files: Path, monkeypatch: pytest.MonkeyPatch, more: list[str]
):
    held: list[weakref.ref[validate.Examined]] = []
    most = 0
    examine = validate.examine

    def counted(*arguments: Any) -> validate.Examined:
        nonlocal most
        most = max(most, sum(one() is not None for one in held))
        found = examine(*arguments)
        held.append(weakref.ref(found))
        return found

    monkeypatch.setattr(validate, "examine", counted)
    assert perdure("validate", *more, *["good.yml"] * 20).code == 0
    assert len(held) == 20
    assert most <= 1
