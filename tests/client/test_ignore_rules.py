"""Ignore files mean what git means by them: compared with git itself on generated trees."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from perdure.client.code import entries
from perdure.client.code.rules import Rules

NAMES = ["a", "b", "a.log", "b.log", "build", "d", "é", "x y", "#h", "!n", ".h"]
PATTERNS = [
    "*.log",
    "!*.log",
    "!a.log",
    "/a",
    "a/",
    "d/",
    "!d/",
    "/d/b",
    "**/b",
    "d/**",
    "d/**/a",
    "!d/a",
    "*",
    "!*/",
    "/*",
    "!/d",
    "?",
    "[ab]",
    "[!a]",
    "build",
    "# comment",
    "",
    r"\#h",
    r"\!n",
    "x y",
    "a ",
    r"x\ y",
    "b.*",
    ".*",
    "é",
    "a\r",
]
names = st.sampled_from(NAMES)
paths = st.lists(names, min_size=1, max_size=4).map("/".join)
ignore_files = st.lists(st.sampled_from(PATTERNS), max_size=5).map("\n".join)


@given(
    files=st.lists(paths, max_size=14),
    ignores=st.dictionaries(st.one_of(st.just(""), paths), ignore_files, max_size=4),
)
@example(files=["d/a", "d/b"], ignores={"": "d/\n!d/a"})
@example(files=["a.log", "d/a.log"], ignores={"": "*.log", "d": "!a.log"})
@example(files=["build/a", "b/build/a"], ignores={"": "/build"})
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_folder_takes_along_what_git_would(files: list[str], ignores: dict[str, str]):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        subprocess.run(["git", "init", "-q", folder], check=True)
        for path in files:
            _write(root / path, b"x")
        for where, text in ignores.items():
            _write(root / where / ".gitignore", text.encode())
        found = {entry.name for entry in entries.folder(root).entries if entry.kind != "folder"}
        assert found == _git(root, "--others", "--exclude-standard")


def test_ignore_files_above_the_folder_count(tmp_path: Path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    _write(tmp_path / ".gitignore", b"*.pyc\n/src/pkg/secret\n")
    _write(tmp_path / ".git/info/exclude", b"scratch\n")
    for name in ("a.py", "a.pyc", "secret", "scratch"):
        _write(tmp_path / "src/pkg" / name, b"x")
    assert _names(tmp_path / "src/pkg") == {"a.py"}


def test_a_folder_that_is_itself_ignored_is_taken_when_it_is_named(tmp_path: Path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    _write(tmp_path / ".gitignore", b"data/\n")
    _write(tmp_path / "data/deep/x.bin", b"x")
    assert _names(tmp_path / "data") == {"deep/x.bin"}
    assert _names(tmp_path / "data/deep") == {"x.bin"}


def test_each_kind_of_ignore_file_counts_and_ours_has_the_last_word(tmp_path: Path):
    for name in ("a", "b", "c", "keep"):
        _write(tmp_path / name, b"x")
    _write(tmp_path / ".gitignore", b"a\nkeep\n")
    _write(tmp_path / ".dstackignore", b"b\n")
    _write(tmp_path / ".perdureignore", b"c\n!keep\n")
    assert _names(tmp_path) == {"keep", ".gitignore", ".dstackignore", ".perdureignore"}


def test_what_is_left_out_is_named(tmp_path: Path):
    _write(tmp_path / ".gitignore", b"build/\n*.log\n")
    for name in ("build/a", "build/b", "x.log", "kept"):
        _write(tmp_path / name, b"x")
    found = entries.folder(tmp_path)
    assert found.left_out == ["build", "x.log"]
    assert found.left_out_count == 2


def test_a_repository_takes_what_is_tracked_changed_and_new(tmp_path: Path):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=t", "-c", "user.email=t@t"]
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for name in ("tracked", "changed", "deleted", "forced.log", "sub/x"):
        _write(tmp_path / name, b"old")
    _write(tmp_path / ".gitignore", b"*.log\n")
    subprocess.run([*git, "add", "-f", "."], check=True)
    subprocess.run([*git, "commit", "-qm", "x"], check=True)
    _write(tmp_path / "changed", b"new")
    _write(tmp_path / "untracked", b"new")
    _write(tmp_path / "ignored.log", b"new")
    (tmp_path / "deleted").unlink()
    found = entries.repository(tmp_path)
    names = {entry.name for entry in found.entries}
    assert names == {"tracked", "changed", "forced.log", "sub/x", ".gitignore", "untracked"}
    assert found.left_out == ["ignored.log"]
    assert {entry.name for entry in entries.repository(tmp_path / "sub").entries} == {"x"}


def test_our_ignore_files_count_in_a_repository_too(tmp_path: Path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for name in ("data/a", "data/deep/b", "src/a.bin", "src/a.py"):
        _write(tmp_path / name, b"x")
    _write(tmp_path / ".perdureignore", b"/data\n")
    _write(tmp_path / "src/.dstackignore", b"*.bin\n")
    found = entries.repository(tmp_path)
    assert {entry.name for entry in found.entries} == {"src/a.py", ".perdureignore", "src/.dstackignore"}
    assert set(found.left_out) == {"data", "src/a.bin"}


def test_a_nested_repository_goes_along_without_its_git_folder(tmp_path: Path):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    subprocess.run(["git", "init", "-q", tmp_path / "inner"], check=True)
    _write(tmp_path / "inner/a", b"x")
    _write(tmp_path / "b", b"x")
    assert {entry.name for entry in entries.repository(tmp_path).entries} == {"inner/a", "b"}
    assert _names(tmp_path) == {"inner/a", "b"}


def test_rules_without_ignore_files_ignore_nothing():
    assert not Rules().ignores("a/b", False)


def _names(root: Path) -> set[str]:
    return {entry.name for entry in entries.folder(root).entries}


def _git(root: Path, *options: str) -> set[str]:
    answer = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", *options],
        check=True,
        capture_output=True,
        env=os.environ | {"HOME": "/"},
    )
    return {os.fsdecode(name) for name in answer.stdout.split(b"\0") if name}


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except (NotADirectoryError, FileExistsError, IsADirectoryError):
        pass  # a file of an earlier path is where this one's folder would be: the tree is what could be made
