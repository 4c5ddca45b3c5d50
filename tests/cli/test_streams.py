"""The program with streams that are closed, full, or in another encoding."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = [sys.executable, "-c", "from perdure.cli import main; main()"]


CLOSED, FULL = (f"Error: the output cannot be written: {why}" for why in ("Bad file descriptor", "No space left"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ok.yml").write_text("type: task\nname: xx\ncommands: [echo]\n")
    (tmp_path / "bad.yml").write_text("type: task\ncommands: [echo]\nkey-ä: 1\n")
    return tmp_path


def shell(folder: Path, redirections: str, *arguments: str, **environ: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["sh", "-c", f'"$@" {redirections}', "sh", *PROGRAM, *arguments],
        cwd=folder,
        env={"HOME": str(folder), "PERDURE_HOME": str(folder), "PYTHONPATH": ":".join(sys.path), **environ},
        capture_output=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("redirections", "arguments", "code", "said"),
    [
        (">&-", ["validate", "ok.yml"], 0, "ok.yml is valid"),
        (">&-", ["validate", "--json", "ok.yml"], 1, CLOSED),
        ("> /dev/full", ["validate", "--json", "ok.yml"], 1, FULL),
        ("> /dev/full", ["validate", "--json", "gone.yml"], 2, FULL),
        ("> /dev/full", ["schema"], 1, FULL),
        ("<&-", ["validate", "-"], 2, "Error: stdin cannot be read: Bad file descriptor"),
        ("<&-", ["secret", "set", "x"], 1, "nobody is there to ask"),
        ("<&-", ["secret", "set", "x", "-"], 1, "Error: stdin cannot be read: Bad file descriptor"),
        ("2>&-", ["validate", "bad.yml"], 1, ""),
        ("2> /dev/full", ["validate", "bad.yml"], 1, ""),
        ("<&- >&- 2>&-", ["validate", "ok.yml"], 0, ""),
    ],
)
def test_a_stream_that_cannot_be_used_is_said_to_be_so(
    folder: Path, redirections: str, arguments: list[str], code: int, said: str
):
    ended = shell(folder, redirections, *arguments)
    err = ended.stderr.decode()
    assert ended.returncode == code, err
    assert said in err
    assert "Traceback" not in err
    assert "fault of Perdure's" not in err


def test_what_an_encoding_does_not_have_is_shown_all_the_same(folder: Path):
    ascii_only = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ended = shell(folder, "", "validate", "bad.yml", **ascii_only)
    assert ended.returncode == 1
    assert b"key-\\xe4" in ended.stderr
    ended = shell(folder, "2>&1", "doctor", **ascii_only)
    assert b"fault of Perdure's" not in ended.stdout
