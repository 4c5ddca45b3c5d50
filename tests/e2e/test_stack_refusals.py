"""What the stack cannot work with, it says in one sentence, and exits with 1."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from perdure.client.room import LEAST_FREE
from perdure.stack.home import Home, StackError
from tests.support.stack import Stack, fresh

NOBODY = 65534
SOURCES = Path(__file__).parents[2]


def as_nobody() -> dict[str, object]:
    """The program as an ordinary user, with a Python that such a user may run."""
    if os.geteuid() != 0:
        return {}
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    for python in (sys.executable, f"/usr/bin/python{version}", f"/usr/local/bin/python{version}"):
        tried = subprocess.run(
            ["/bin/sh", "-c", 'exec "$0" -c "import sys, sysconfig; print(sys.version_info[:2])"', python],
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )
        if tried.stdout.strip() == str(sys.version_info[:2]):
            places = [sysconfig.get_path("purelib"), str(SOURCES / "src"), str(SOURCES)]
            return {
                "uid": NOBODY,
                "program": (python, "-c", "from perdure.cli import main; main()"),
                "environ": {"PYTHONPATH": ":".join(places), "HOME": "/nonexistent"},
            }
    raise AssertionError(f"no Python {version} that an ordinary user may run: apt-get install python3")


def test_an_ordinary_user_has_the_whole_stack() -> None:
    with fresh(**as_nobody()) as stack:
        stack.environ["HOME"] = str(stack.home.parent)
        stack.up()
        path = stack.home.parent / "hello.yml"
        path.write_text(json.dumps({"type": "task", "name": "hello", "commands": ["id -u"]}))
        stack.ok("apply", "-f", str(path), "-y")
        assert stack.ok("logs", "hello") == f"{stack.uid or os.geteuid()}\n"
        stack.ok("down")


def test_a_home_that_may_not_be_written_is_named(tmp_path: Path) -> None:
    with fresh(**as_nobody()) as stack:
        stack.home.mkdir()
        stack.home.chmod(0o555)
        if stack.uid is not None:
            os.chown(stack.home, stack.uid + 0, stack.uid)
        stack.home.parent.chmod(0o755)
        os.chown(stack.home, os.geteuid(), os.getegid())
        said = stack.refused("up", "--detach")
        assert "no permission to write" in said and str(stack.home) in said
        stack.home.rmdir()


def test_no_home_at_all_is_said() -> None:
    options = as_nobody()
    with fresh(**options) as stack:
        stack.environ = {k: v for k, v in stack.environ.items() if k not in ("HOME", "PERDURE_HOME")}
        stack.uid = 54321 if stack.uid is not None else None
        if stack.uid is None:
            pytest.fail("needs root: only a user without a name has no home at all")
        assert "HOME is not set" in stack.refused("up", "--detach")


def test_a_file_in_the_way_is_named(stack: Stack) -> None:
    stack.home.write_text("not a folder")
    said = stack.refused("up", "--detach")
    assert str(stack.home) in said
    stack.home.unlink()


@pytest.mark.parametrize(("version", "word"), [(99, "newer"), (0, "older")])
def test_a_folder_of_another_version_is_not_touched(stack: Stack, version: int, word: str) -> None:
    stack.home.mkdir()
    state = json.dumps({"version": version})
    (stack.home / "state.json").write_text(state)
    said = stack.refused("up", "--detach")
    assert f"was written by a{'n' if word == 'older' else ''} {word} Perdure" in said
    assert (stack.home / "state.json").read_text() == state
    shutil.rmtree(stack.home)


def test_a_full_disk_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=LEAST_FREE - 1)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(StackError, match=r"the disk of .* is full: 63 MB left"):
        Home(tmp_path).prepare()


def test_what_is_no_database_is_refused_and_not_remembered(stack: Stack) -> None:
    said = stack.refused("up", "--detach", "--database-url", "mysql://root:secret@here/there")
    assert "the database's address is not one of Postgres" in said
    assert "secret" not in said + (stack.home / "state.json").read_text()
    assert stack.processes() == []


def test_a_part_that_cannot_start_takes_everything_down(stack: Stack) -> None:
    done = stack.run("up", "--detach", PG_BIN_DIR="/nonexistent")
    assert done.returncode == 1
    assert "PG_BIN_DIR is /nonexistent, which has no postgres and initdb" in " ".join(done.stderr.split())
    assert stack.processes() == []


def test_deleting_the_state_of_running_jobs_needs_all(stack: Stack) -> None:
    assert "add --all" in stack.refused("down", "--delete-state")


def test_a_folder_that_is_not_ours_is_not_deleted(stack: Stack) -> None:
    stack.home.mkdir()
    (stack.home / "logs").mkdir()
    assert "not a folder that Perdure keeps state in" in stack.refused("down", "--all", "--delete-state")
    assert (stack.home / "logs").is_dir()
    shutil.rmtree(stack.home)
