"""Every mistake is told in a sentence, with a hint and its exit code, and nothing half-made is left."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from perdure.model import api
from perdure.model.errors import FieldError, PerdureError
from tests.cli.conftest import FakeClient, Program, a_run

GOOD = "type: task\nname: xx\ncommands: [echo]\n"


def test_a_mistake_is_told_with_its_line_its_text_and_the_nearest_key(perdure: Program, tmp_path: Path):
    (tmp_path / "bad.yml").write_text("type: task\ncommandz:\n  - echo\nresources:\n  gpuu: 1\n")
    for command in (("apply", "-y", "-f", "bad.yml"), ("validate", "bad.yml")):
        ended = perdure(*command)
        assert ended.code == 1
        assert ended.out == ""
        assert "bad.yml:2:1: commandz" in ended.err
        assert "bad.yml:5:3: resources.gpuu" in ended.err
        assert "did you mean commands?" in ended.err
        assert "did you mean gpu?" in ended.err
        assert "\n  5 │   gpuu: 1\n    │   ^^^^\n" in ended.err


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["apply"], 1, "there is no .perdure.yml here"),
        (["apply", "-f", "gone.yml"], 1, "there is no file gone.yml"),
        (["apply", "-f", "."], 1, "is a folder"),
        (["apply", "-f", ""], 1, "a file's name is empty"),
        (["validate", ""], 2, "a file's name is empty"),
        (["apply", "-f", "-"], 1, "-y"),
        (["apply", "-f", "fleet.yml", "-y", "-e", "A=1"], 1, "-e is for runs"),
        (["apply", "-f", "fleet.yml", "-y", "--", "x"], 1, "-- is for runs"),
        (["apply", "-f", "task.yml", "-y", "--", "x"], 1, "no command takes the arguments after --"),
        (["secret", "list", "--project", "x y"], 1, "'x y' is not the name of a project"),
        (["ps", "--project", "x y"], 1, "'x y' is not the name of a project"),
        (["fleet", "list", "--project", "\udcff"], 1, "is not the name of a project"),
        (["apply", "train.yml"], 2, "a file is given with -f"),
        (["apply", "--nope"], 2, "No such option"),
        (["logs"], 2, "Missing argument"),
        (["logs", "xx", "--job", "-1"], 2, "--job"),
        (["nope"], 2, "No such command"),
        (["fleet", "get"], 2, "NAME"),
        (["fleet", "lst"], 2, "lst"),
        (["run", "get"], 2, "either a name or --id"),
        (["run", "get", "--id", "123"], 1, "is not a UUID"),
        (["schema", "tsk"], 1, "did you mean task?"),
        (["validate"], 2, "Missing argument"),
        (["ps"], 1, "no Temporal server is known"),
    ],
)
def test_a_wrong_command_says_what_is_wrong(
    perdure: Program, tmp_path: Path, arguments: list[str], code: int, told: str
):
    (tmp_path / "fleet.yml").write_text("type: fleet\nname: pool\nnodes: 1\n")
    (tmp_path / "task.yml").write_text("type: task\nname: xx\ncommands: [echo, '$${{ run.args }}']\n")
    ended = perdure(*arguments)
    assert ended.code == code
    assert told in " ".join(ended.err.replace("│", "").split())
    assert "Traceback" not in ended.err
    assert ended.out == ""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("type: [", ":1:"),
        ("- a\n", "mapping"),
        ("", "empty"),
        ("type: tusk\ncommands: [a]\n", "type"),
        ("type: task\n", "commands"),
        ("type: task\ncommands: [a]\nnodes: x\n", ":3:8: nodes"),
        ("\x00", "<stdin>"),
        ("a: &a [*a]\n", "<stdin>"),
    ],
)
def test_what_is_no_configuration_is_told(perdure: Program, text: str, told: str):
    ended = perdure("validate", "-", input=text)
    assert ended.code == 1
    assert told in ended.err
    assert "fault of Perdure" not in ended.err


def test_a_file_that_is_not_text_is_told(perdure: Program, tmp_path: Path):
    (tmp_path / "x.yml").write_bytes(b"type: \xff\xfe\n")
    ended = perdure("validate", "x.yml")
    assert ended.code == 1
    assert "x.yml" in ended.err


def test_validate_says_of_each_file_whether_it_is_valid(perdure: Program, tmp_path: Path):
    (tmp_path / "good.yml").write_text(GOOD)
    (tmp_path / "bad.yml").write_text("type: task\n")
    ended = perdure("validate", "good.yml", "bad.yml", "gone.yml")
    assert ended.code == 2
    assert "good.yml is valid" in ended.err
    assert "bad.yml is not valid" in ended.err
    assert "no file gone.yml" in ended.err
    assert perdure("validate", "good.yml").code == 0


def test_validate_says_what_this_version_cannot_run_and_what_is_not_set_here(perdure: Program, tmp_path: Path):
    (tmp_path / "service.yml").write_text("type: service\ncommands: [serve]\nport: 80\n")
    ended = perdure("validate", "service.yml")
    assert ended.code == 0
    assert "service.yml is valid. This version cannot run it yet:\n" in ended.err
    assert "  service.yml:1:7: type: is service, which is not supported yet" in ended.err
    (tmp_path / "env.yml").write_text(GOOD + "env: [PERDURE_UNSET_SECRET]\nports: ['9100:8000']\n")
    ended = perdure("validate", "env.yml")
    assert ended.code == 0
    assert "env.yml is valid.\n" in ended.err
    assert "Note: PERDURE_UNSET_SECRET is not set here" in ended.err
    assert "Note: the local port 9100 is not forwarded yet" in ended.err


def test_validate_tells_what_is_no_name_with_its_line(perdure: Program, tmp_path: Path):
    (tmp_path / "typo.yml").write_text("type: task\nname: Typo_Name\ncommands: [a]\n")
    ended = perdure("validate", "typo.yml")
    assert ended.code == 1
    assert "typo.yml:2" in ended.err
    assert "is not a name: 'Typo_Name'" in ended.err


def test_mistakes_that_the_worker_finds_get_their_lines(perdure: Program, fake: FakeClient):
    fake.plan_answer = api.Plan(
        name="x", errors=(FieldError(path="commands[0]", message="is odd", hint="make it even"),)
    )
    ended = perdure("apply", "-f", "-", "-y", input=GOOD)
    assert ended.code == 1
    assert "<stdin>:3:12: commands[0]: is odd" in ended.err
    assert "make it even" in ended.err
    assert fake.applied == []


def test_a_missing_value_a_missing_file_and_a_url_are_told_before_anything_is_asked(
    perdure: Program, fake: FakeClient, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("G_TOKEN", raising=False)
    ended = perdure("apply", "-f", "-", "-y", input=GOOD + "env: [G_TOKEN]\n")
    assert (ended.code, "<stdin>:4:7: env[0]: G_TOKEN is not set here" in ended.err) == (1, True)
    ended = perdure("apply", "-f", "-", "-y", input=GOOD + "files: [gone]\n")
    assert (ended.code, "<stdin>:4:9: files[0]: there is no file or folder gone" in ended.err) == (1, True)
    ended = perdure("apply", "-f", "-", "-y", input=GOOD + "repos: ['https://example.com/a']\n")
    assert (ended.code, "repos[0]: is a repository by URL" in ended.err) == (1, True)
    ended = perdure("apply", "-f", "-", "-y", "-e", "1X=2", input=GOOD)
    assert (ended.code, "is not the name of a variable" in ended.err) == (1, True)
    assert fake.planned == []


def test_code_over_the_limit_is_told_before_anything_is_stored(perdure: Program, fake: FakeClient, tmp_path: Path):
    (tmp_path / "big").write_bytes(os.urandom(3 * 1024**2))
    fake.code_limit = 1024**2
    ended = perdure("apply", "-f", "-", "-y", input=GOOD + "files: [big]\n")
    assert ended.code == 1
    assert "files: big is 3.0 MiB, and 1.0 MiB may be uploaded" in ended.err
    assert "3.0 MiB  big" in ended.err
    assert fake.applied == []
    assert list((tmp_path / "blobs/code").iterdir()) == []


def test_an_active_run_of_the_name_is_shown_and_left_alone(perdure: Program, fake: FakeClient):
    fake.run = a_run("xx", "running")
    active = api.ActiveRun(run_id=fake.run.run_id, status="running", submitted_at=fake.run.submitted_at)
    fake.plan_answer = fake.plan_answer.but(active=active)
    ended = perdure("apply", "-f", "-", "-y", input=GOOD)
    assert ended.code == 1
    assert "Run xx is already running" in ended.err
    assert "--force" in ended.err
    assert (fake.applied, fake.stopped) == ([], [])


def test_an_unreadable_answer_is_our_fault_in_one_sentence(
    perdure: Program, fake: FakeClient, monkeypatch: pytest.MonkeyPatch
):
    async def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(FakeClient, "list_runs", broken)
    ended = perdure("ps")
    assert ended.code == 1
    assert "this is a fault of Perdure's: ZeroDivisionError: a bug" in ended.err
    assert "Traceback" not in ended.err
    monkeypatch.setenv("PERDURE_DEBUG", "1")
    assert "Traceback" in perdure("ps").err


def test_what_others_wrote_is_shown_and_never_obeyed(
    perdure: Program, fake: FakeClient, monkeypatch: pytest.MonkeyPatch
):
    async def odd(*_: object, **__: object) -> None:
        raise PerdureError("[red]no\x1b[2J\nline[/red]", hint="[bold]")

    monkeypatch.setattr(FakeClient, "list_runs", odd)
    ended = perdure("ps", "--json")
    assert ended.err == "Error: [red]no\\x1b[2J\\nline[/red]\n  [bold]\n"
    assert ended.out == ""


def test_an_unknown_run_is_told_with_where_to_look(perdure: Program, fake: FakeClient):
    for arguments in (["stop", "xx", "-y"], ["run", "get", "xx"]):
        ended = perdure(*arguments)
        assert ended.code == 1
        assert ended.err == "Error: there is no run xx in project main\n  `perdure ps -a` lists them all\n"
    assert perdure("fleet", "get", "xx").code == 1


@pytest.mark.parametrize("option", [["--project", "other"], ["--json"]])
@pytest.mark.parametrize("command", [["fleet", "list"], ["fleet", "delete", "pool"], ["secret", "list"]])
def test_an_option_in_front_of_a_command_is_not_dropped(perdure: Program, option: list[str], command: list[str]):
    group, *rest = command
    ended = perdure(group, *option, *rest)
    assert ended.code == 2
    assert f"{option[0]} stands behind the command" in ended.err


def test_a_folder_that_may_not_be_entered_is_said_to_be_so(
    perdure: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "shut").mkdir()
    monkeypatch.chdir(tmp_path / "shut")
    (tmp_path / "shut").chmod(0)
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)  # root may enter everything
    try:
        ended = perdure("apply", "--no-profile")
    finally:
        os.seteuid(before)
        (tmp_path / "shut").chmod(0o700)
    assert (ended.code, ended.err.splitlines()[0]) == (1, "Error: .perdure.yml cannot be read: Permission denied")


def test_an_argument_that_is_not_text_is_said_to_be_so(
    perdure: Program, fake: FakeClient, monkeypatch: pytest.MonkeyPatch
):
    async def plan(request: api.PlanRequest) -> None:
        request.model_dump_json()  # as on its way

    monkeypatch.setattr(fake, "plan", plan)
    text = "type: task\nname: xx\ncommands: ['echo ${{ run.args }}']\n"
    ended = perdure("apply", "-f", "-", "-y", "-d", "--", "\udcff", input=text)
    assert (ended.code, ended.err) == (
        1,
        "Error: \\xff on the command line is not text: it has bytes that are not UTF-8\n",
    )


def test_a_run_may_be_submitted_from_a_folder_whose_name_is_not_text(
    perdure: Program, fake: FakeClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = tmp_path / "d\udcff"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert perdure("apply", "-f", "-", "-y", "-d", input="type: task\nname: xx\ncommands: [echo]\n").code == 0
    assert str(fake.applied[0].directory).endswith(r"/d\xff")
