"""The built wheel contains all three packages, and the program it installs works from any folder."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_wheel_holds_everything_and_runs_from_anywhere(tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", tmp_path, ROOT], check=True, capture_output=True)
    [wheel] = tmp_path.glob("perdure-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for part in ("perdure/cli/__init__.py", "workflows/run.py", "activities/placement.py", "perdure/py.typed"):
        assert part in names, f"{part} is not in the wheel"
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "examples/"))]
    assert [name for name in names if name.startswith("perdure/store/migrations/versions/")]

    target = tmp_path / "installed"
    subprocess.run([*pip, "install", "--no-deps", "--target", target, wheel], check=True, capture_output=True)
    code = (
        "import sys, perdure, workflows, activities; "
        "assert all(m.__file__.startswith(sys.argv[1]) for m in (perdure, workflows, activities)); "
        "from perdure.stack import assembly, worker; from perdure.cli import main"
    )
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, sys.argv[1]); {code}", target],
        check=True,
        cwd=elsewhere,
    )
