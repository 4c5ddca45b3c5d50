"""What the pages on configurations show is right, and what they say to type works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from perdure import spec
from perdure.model.errors import InvalidConfiguration
from tests.spec import differences

DOCS = Path(__file__).parents[2] / "docs"
PROGRAMS = Path(sys.executable).parent
PAGES = {
    page: (DOCS / page).read_text() for page in ("configuration.md", "resolving.md", "editors.md", "secrets.md")
}


def blocks(page: str, language: str = "") -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", PAGES[page], flags=re.MULTILINE | re.DOTALL)
    return [text for named, text in found if named == language]


def write_files(page: str, folder: Path) -> None:
    """The configurations of a page whose first line is their name, and one for its other commands."""
    (folder / "train.perdure.yml").write_text("type: task\ncommands: [x]\n")
    for text in blocks(page, "yaml"):
        if name := re.match(r"# (\S+\.yml)\n", text):
            path = folder / name[1]
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)


@pytest.mark.parametrize("page", ["configuration.md", "resolving.md", "editors.md"])
def test_every_command_works_without_a_server(page: str, tmp_path: Path) -> None:
    write_files(page, tmp_path)
    environ = os.environ | {
        "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
        "PERDURE_HOME": str(tmp_path / "home"),
        "HOME": str(tmp_path),
    }
    for script in blocks(page):
        if "perdure secret" in script:
            continue  # with a server: tests/e2e/test_secrets.py
        command = ["bash", "-eu", "-o", "pipefail", "-c", script]
        done = subprocess.run(
            command, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"


def test_every_shown_configuration_is_right() -> None:
    shown = [text for page in PAGES for text in blocks(page, "yaml") if re.search(r"^type: ", text, re.MULTILINE)]
    right = [text for text in shown if "nmae" not in text]
    assert len(right) >= 3
    for text in right:
        spec.parse(spec.load_yaml(text))


def test_every_trap_of_the_page_is_none() -> None:
    section = PAGES["configuration.md"].split("## YAML that means what you wrote")[1].split("\n## ")[0]
    traps = re.findall(r"^\| `(.+?)` \| (.+?) \|", section, flags=re.MULTILINE)
    assert len(traps) >= 8
    for text, read in traps:
        spec.parse(spec.load_yaml(f"type: task\ncommands: [x]\n{text}"))
        value = next(iter(yaml.safe_load(text).values()))  # PyYAML reads YAML 1.1
        while isinstance(value, list | dict):
            value = next(iter(value.values() if isinstance(value, dict) else value))
        assert str(value).lower() in read, text
    with pytest.raises(InvalidConfiguration):
        spec.parse(spec.load_yaml("type: task\ncommands: [x]\nenv: {DEBUG: true}"))


def test_the_fields_named_as_ours_are_those_of_the_reference() -> None:
    section = PAGES["configuration.md"].split("## Beyond dstack")[1].split("\n## ")[0]
    named = {name.rpartition(".")[2] for name in re.findall(r"`([a-z_.]+)`", section)}
    reference = (DOCS / "reference.md").read_text()
    assert named == set(re.findall(r"^\| `(\w+)` \*ours\*", reference, flags=re.MULTILINE))


def test_the_page_has_every_difference_and_no_other() -> None:
    section = PAGES["configuration.md"].split("## Where it differs from dstack, and why")[1].split("\n## ")[0]
    rows = [tuple(line.strip("| ").split(" | ")) for line in section.splitlines() if line.startswith("| ")]
    assert rows[1:] == [(what, here, why) for what, (here, why) in differences.PAGE.items()]
    assert {*differences.VERDICTS.values(), *differences.VALUES.values()} <= {*differences.PAGE, differences.KEPT}
