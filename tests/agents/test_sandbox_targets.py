"""Code may be unpacked at any absolute path, also at one above what a job needs to start at all."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from perdure.agents.process import sandbox


def test_a_target_above_what_a_job_needs_does_not_hide_it(tmp_path: Path) -> None:
    bwrap = sandbox.probe()
    assert bwrap is not None, "bubblewrap does not work here"
    home, code = tmp_path / "a" / "home", tmp_path / "code"
    home.mkdir(parents=True)
    code.mkdir()
    (home / "kept").write_text("kept")
    (code / "cfg.json").write_text("{}")
    words = sandbox.arguments(bwrap, hidden=[], kept=[home], binds=[(code, tmp_path / "a")])
    listed = ["cat", str(tmp_path / "a" / "cfg.json"), str(home / "kept")]
    done = subprocess.run([*words, "--", *listed], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "{}kept"), done.stderr


@pytest.mark.parametrize("above", [1, 2, 3])
def test_a_target_above_our_own_files_leaves_them_in_sight(tmp_path: Path, above: int) -> None:
    bwrap = sandbox.probe()
    assert bwrap is not None, "bubblewrap does not work here"
    launch = Path(sandbox.__file__).resolve().with_name("launch.py")
    code = tmp_path / "code"
    code.mkdir()
    words = sandbox.arguments(bwrap, hidden=[], kept=[], binds=[(code, launch.parents[above])])
    done = subprocess.run([*words, "--", "cat", str(launch)], capture_output=True, text=True, check=False)
    assert done.stdout == launch.read_text(), done.stderr
