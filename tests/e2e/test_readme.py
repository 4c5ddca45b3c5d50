"""What the README says to type works, as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.stack import Stack, fresh

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PROGRAMS = Path(sys.executable).parent


@pytest.fixture
def stack() -> Iterator[Stack]:
    with fresh(program=[str(PROGRAMS / "perdure")]) as one:
        yield one


def blocks(heading: str) -> list[str]:
    """The fenced blocks under a heading, in order."""
    section = README.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return re.findall(r"^```\n(.*?)^```$", section, flags=re.MULTILINE | re.DOTALL)


def bash(stack: Stack, script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """In a folder of the user's, with what the README puts on PATH, and nobody at the keyboard."""
    environ = stack.environ | {"PATH": f"{PROGRAMS}:{os.environ['PATH']}"}
    return subprocess.run(
        ["bash", "-eu", "-o", "pipefail", "-c", script],
        env=environ,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def test_every_command_of_use_it_works(stack: Stack, tmp_path: Path) -> None:
    commands, contract = blocks("Use it")
    script = commands.replace("perdure apply -f train.yml           #", "perdure apply -f train.yml -y        #")
    assert script != commands, "the README no longer applies train.yml with a question"
    script = script.replace(
        "perdure apply -f train.yml -y -d     #", "perdure apply -f train.yml -y -d -n again  #"
    )
    script = script.replace("perdure stop train ", "perdure stop again -y || true ")
    script = script.replace("perdure secret set hf-token ", "echo x | perdure secret set hf-token - ")
    before_down, down = script.split("perdure down ", 1)
    done = bash(stack, f"{before_down}\n{contract}\nperdure logs hello -f\nperdure down {down}", tmp_path)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "rank 0 of 2, master at 127.0.0." in done.stdout
    assert "\nhello\n" in done.stdout
    stack.up()


def test_every_make_target_named_exists() -> None:
    named = set(re.findall(r"make ([a-z]+)", README))
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert named <= targets


@pytest.mark.parametrize("page", sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
