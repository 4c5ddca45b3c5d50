"""What each command prints and does, and the exit codes that scripts rely on."""

from __future__ import annotations

import errno
import io
import json
import re
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from rich.console import Console

from activities.seal import unsealed
from perdure.cli import tables
from perdure.cli.output import LogOutput
from perdure.client.logs import LogPiece, NotStarted
from perdure.model import api
from perdure.model.resources import OfferFailure
from tests.cli.conftest import NOW, OFFER, FakeClient, Program, a_job, a_run

GOOD = "type: task\nname: xx\ncommands: ['echo ${{ run.args }}']\n"
COMMANDS = ["apply", "ps", "logs", "stop", "run", "offer", "fleet", "doctor", "schema", "validate", "up", "down"]


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS), ["run", "get"]])
def test_every_command_has_help(perdure: Program, command: list[str]):
    ended = perdure(*command, "--help")
    assert ended.code == 0
    assert "Usage: perdure" in ended.out


def test_help_imports_nothing_that_it_does_not_need():
    script = (
        "import sys\nfrom perdure.cli.program import run\ncode = run(['--help'])\n"
        "assert code == 0\n"
        "heavy = {'temporalio', 'pydantic', 'asyncio', 'yaml', 'psutil', 'perdure.stack'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr


def test_the_version_is_printed(perdure: Program):
    assert perdure("--version").out.startswith("perdure 0.")


@pytest.mark.parametrize("status", ["done", "failed", "terminated"])
def test_an_attached_run_ends_with_its_own_code(perdure: Program, fake: FakeClient, status: str):
    job = a_job(status=status, exit_status=0 if status == "done" else 3)
    fake.run = a_run("xx", status, (job,), message="" if status == "done" else "node 0 exited")
    fake.pieces = [LogPiece(job, 0, b""), LogPiece(job, 0, b"out\xff\n"), LogPiece(job, 5, b"", complete=True)]
    ended = perdure("apply", "-f", "-", "-y", input=GOOD)
    assert ended.code == (0 if status == "done" else 1)
    assert f"Run xx {status} after 3.0 s, exit code {job.exit_status}." in ended.err
    assert ("node 0 exited" in ended.err) == (status != "done")


def test_the_end_of_a_gang_names_the_node_that_failed_once(perdure: Program, fake: FakeClient):
    stopped = a_job(status="terminated", reason="terminated_by_server", exit_status=143)
    broken = a_job(node=1, status="failed", reason="container_exited_with_error", exit_status=3)
    fake.run = a_run("xx", "failed", (stopped, broken), message="node 1 exited with status 3")
    ended = perdure("apply", "-f", "-", "-y", input=GOOD)
    assert "exit code 3." in ended.err
    assert ended.err.count("node 1 exited with status 3") == 1
    assert "node 0 was stopped with its run\n" in ended.err


def test_the_code_of_a_run_that_is_done_is_the_masters_and_not_of_who_was_stopped(
    perdure: Program, fake: FakeClient
):
    master = a_job(status="done", reason="done_by_runner", exit_status=0)
    stopped = a_job(node=1, status="terminated", reason="terminated_by_server", exit_status=143)
    fake.run = a_run("xx", "done", (master, stopped), nodes=2)
    assert "Run xx done after 3.0 s, exit code 0.\n" in perdure("apply", "-f", "-", "-y", input=GOOD).err
    assert json.loads(perdure("run", "get", "xx", "--json").out)["exit_status"] == 0
    assert json.loads(perdure("ps", "-a", "--json").out)["runs"][0]["exit_status"] == 0
    for shown in (perdure("ps", "-a").out, perdure("run", "get", "xx").out):
        assert "143" not in shown
        assert "was stopped with its run" in shown


def test_a_gang_of_which_one_node_has_begun_is_listed_as_a_gang(perdure: Program, fake: FakeClient):
    fake.run = a_run("xx", "running", (a_job(node=1, status="running"),), nodes=2)
    for shown in (perdure("ps").out, perdure("run", "get", "xx").out):
        run, job = shown.splitlines()[2:4]
        assert "local-0" not in run
        assert job.split()[:3] == ["job", "1", "local-0"]


def test_a_detached_run_is_submitted_and_left(perdure: Program, fake: FakeClient):
    ended = perdure("apply", "-f", "-", "-y", "-d", input=GOOD)
    assert ended.code == 0
    assert ended.out == ""
    assert "perdure logs xx -f" in ended.err
    assert len(fake.applied) == 1


@pytest.mark.parametrize(("options", "code"), [(["-d"], 0), ([], 1)])
def test_apply_prints_the_run_as_one_json_document(
    perdure: Program, fake: FakeClient, options: list[str], code: int
):
    fake.run = a_run("xx", "failed")
    ended = perdure("apply", "-f", "-", "-y", "--json", *options, input=GOOD)
    assert ended.code == code
    assert json.loads(ended.out)["run_id"] == str(fake.run.run_id)


def test_code_leaves_no_empty_line_behind_where_nobody_watches(perdure: Program, fake: FakeClient, tmp_path: Path):
    (tmp_path / "train.py").write_text("x")
    said = perdure("apply", "-f", "-", "-y", "-d", input=GOOD + "files: [train.py]\n").err
    assert "1 file" in said
    assert "\n\nRun xx is submitted." in said
    assert "\n\n\n" not in said


@pytest.mark.parametrize(("columns", "widest"), [("60", 60), (None, 200)])
def test_what_is_piped_is_as_wide_as_columns_says(
    perdure: Program, fake: FakeClient, monkeypatch: pytest.MonkeyPatch, columns: str | None, widest: int
):
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    fake.run = a_run("xx", "failed", message="no capacity for an instance: " + "a long reason " * 20)
    lines = perdure("ps", "-a").out.splitlines()
    assert widest - 20 < max(map(len, lines)) <= widest
    assert all(line == line.rstrip() for line in lines)


def test_the_plan_shows_every_value_and_offer_with_its_price(perdure: Program, fake: FakeClient):
    ended = perdure("apply", "-f", "-", "-y", "-d", input=GOOD)
    assert "Resources  cpu=2" in ended.err
    assert "$0.25" in ended.err


def test_a_plan_without_offers_says_why_each_failed(perdure: Program, fake: FakeClient):
    fake.plan_answer = api.Plan(
        name="x", failures=(OfferFailure(offer="local cpu=2", why="has 2 CPUs, wanted 64.."),)
    )
    ended = perdure("apply", "-f", "-", "-y", "-d", input=GOOD)
    assert "No offers." in ended.err
    assert "has 2 CPUs, wanted 64.." in ended.err


def test_a_plan_counts_the_nodes_that_could_start(perdure: Program, fake: FakeClient):
    failure = OfferFailure(offer="fleet local", why="has room for 4 of 9 nodes")
    fake.plan_answer = api.Plan(name="x", nodes=9, short_of=5, offers=(OFFER,), total_offers=1, failures=(failure,))
    ended = perdure("apply", "-f", "-", "-y", "-d", input=GOOD)
    assert "1 of 1 shown, for 9 nodes; at most $2.25 an hour in all" in ended.err
    assert "Only 4 of its 9 nodes could start now." in ended.err
    assert "has room for 4 of 9 nodes" in ended.err


def test_a_narrow_terminal_keeps_the_reason_readable(monkeypatch: pytest.MonkeyPatch):
    reason = "no capacity for an instance: local-0 has no GPUs, wanted 1"
    file = io.StringIO()
    console = Console(width=80, file=file)
    monkeypatch.setattr(tables, "out", lambda: console)
    console.print(tables.run_table([a_run("xx", "failed", message=reason)]))
    printed = file.getvalue().splitlines()
    assert len(printed) == 4, "a reason takes two lines"
    assert "RESOURCES" not in printed[0] and "WHY" in printed[0]


def test_a_reader_that_has_seen_enough_ends_the_log_quietly(
    perdure: Program, fake: FakeClient, monkeypatch: pytest.MonkeyPatch
):
    def closed(_output: object, _piece: object) -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    fake.pieces = [LogPiece(a_job(), 0, b"line\n")]
    monkeypatch.setattr(LogOutput, "write", closed)
    ended = perdure("logs", "xx")
    assert (ended.code, ended.out, ended.err) == (0, "", "")


def test_run_get_lists_every_offer_that_did_not_do(perdure: Program, fake: FakeClient):
    failures = tuple(OfferFailure(offer=f"offer {n}", why=f"reason {n}") for n in range(3))
    fake.run = a_run("xx", "failed", message="no capacity").but(jobs=(), failures=failures)
    shown = perdure("run", "get", "xx").out
    assert all(failure.why in shown for failure in failures)


def test_what_is_asked_for_on_the_command_line_reaches_the_run(
    perdure: Program, fake: FakeClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("FROM_HERE", "taken")
    (tmp_path / "code.py").write_text("print()")
    text = GOOD + "env: [FROM_HERE, PLAIN=1]\nfiles: [code.py]\n"
    arguments = ["apply", "-f", "-", "-y", "-d", "-n", "other", "-e", "GIVEN=a=b", "--", "--epochs", "3", "-x y"]
    assert perdure(*arguments, input=text).code == 0
    (request,) = fake.applied
    assert request.configuration["name"] == "other"
    assert request.arguments == ("--epochs", "3", "-x y")
    values = {name: unsealed(bytes(fake.key), box, name) for name, box in request.sealed.items()}
    assert values == {"FROM_HERE": "taken", "GIVEN": "a=b"}
    assert "taken" not in request.model_dump_json()
    (code,) = request.code
    assert (tmp_path / "blobs/code" / code.sha256).stat().st_size == code.size
    assert fake.planned[0].have_env == ("GIVEN", "FROM_HERE")


def test_the_plan_says_what_goes_along_and_what_stays(perdure: Program, fake: FakeClient, tmp_path: Path):
    for name in ("src/a", "src/b", "src/x.log"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("12345")
    (tmp_path / "src/.perdureignore").write_text("*.log\n")
    ended = perdure("apply", "-f", "-", "-y", "-d", input=GOOD + "files: [src]\n")
    assert "src: 3 files, 16 B, to src; left out: x.log" in ended.err


def test_a_run_without_a_name_gets_one(perdure: Program, fake: FakeClient):
    assert perdure("apply", "-f", "-", "-y", "-d", input="type: task\ncommands: [a]\n").code == 0
    assert fake.applied[0].configuration["name"]


def test_the_default_file_is_the_first_there_is(perdure: Program, fake: FakeClient, tmp_path: Path):
    (tmp_path / ".dstack.yml").write_text(GOOD)
    perdure("apply", "-y", "-d")
    (tmp_path / ".perdure.yml").write_text(GOOD.replace("xx", "ours"))
    perdure("apply", "-y", "-d")
    assert [request.configuration["name"] for request in fake.applied] == ["xx", "ours"]


def test_nothing_is_done_when_the_answer_is_no(perdure: Program, fake: FakeClient, somebody: None, tmp_path: Path):
    (tmp_path / ".perdure.yml").write_text(GOOD)
    for answer in ("n\n", "\n", "", "what\nno\n"):
        assert perdure("apply", input=answer).code == 0
    assert fake.applied == []
    assert perdure("apply", "-d", input="y\n").code == 0
    assert len(fake.applied) == 1


def test_nobody_to_ask_is_told(perdure: Program, fake: FakeClient, tmp_path: Path):
    (tmp_path / ".perdure.yml").write_text(GOOD)
    ended = perdure("apply", input="y\n")
    assert ended.code == 1
    assert "give -y" in ended.err
    assert fake.applied == []


def test_nobody_to_ask_about_a_run_that_goes_on_is_told_of_force(
    perdure: Program, fake: FakeClient, tmp_path: Path
):
    (tmp_path / ".perdure.yml").write_text(GOOD)
    fake.run = a_run("xx", "running")
    active = api.ActiveRun(run_id=fake.run.run_id, status="running", submitted_at=NOW)
    fake.plan_answer = fake.plan_answer.but(active=active)
    for arguments in (["apply"], ["apply", "-y"]):
        ended = perdure(*arguments)
        assert ended.code == 1
        assert "--force stops it and starts this one" in ended.err
        assert "give -y" not in ended.err
    assert (fake.stopped, fake.applied) == ([], [])


@pytest.mark.parametrize("force", [True, False])
def test_an_active_run_is_stopped_first_when_that_is_wanted(
    perdure: Program, fake: FakeClient, somebody: None, tmp_path: Path, force: bool
):
    (tmp_path / ".perdure.yml").write_text(GOOD)
    fake.run = a_run("xx", "running")
    active = api.ActiveRun(run_id=fake.run.run_id, status="running", submitted_at=NOW)
    fake.plan_answer = fake.plan_answer.but(active=active)
    assert perdure("apply", "-d", input="leave\n").code == 0
    assert (fake.stopped, fake.applied) == ([], [])
    arguments = ["apply", "-d", "--force", "-y"] if force else ["apply", "-d"]
    assert perdure(*arguments, input="stop\n").code == 0
    assert fake.stopped == [("xx", False)]
    assert len(fake.applied) == 1


def test_ps_lists_what_lives_or_else_the_last_that_ended(perdure: Program, fake: FakeClient):
    assert "No runs" in perdure("ps").err
    fake.run = a_run(
        "xx", "failed", (a_job(status="failed"), a_job(node=1, status="done")), message="node 0 exited"
    )
    listed = perdure("ps").out
    assert "xx" in listed
    assert "node 0 exited" in listed
    assert "job 1" in listed


def test_json_is_one_document_and_nothing_else(perdure: Program, fake: FakeClient):
    empty = perdure("ps", "--json")
    assert json.loads(empty.out) == {"runs": []}
    fake.run = a_run("xx", "running")
    fake.fleet_rows = (
        api.FleetRow(fleet_id=fake.run.run_id, project="main", name="local", status="active", created_at=NOW),
    )
    fake.checks = (api.Check(invariant="all is well", ok=True),)
    for command, expected in [
        (["ps", "--json"], lambda found: found["runs"][0]["name"] == "xx"),
        (["run", "get", "xx", "--json"], lambda found: found["jobs"][0]["instance"] == "local-0"),
        (["offer", "--json"], lambda found: found["offers"][0]["offer"]["price"] == 0.25),
        (["fleet", "--json"], lambda found: found["fleets"][0]["name"] == "local"),
        (["fleet", "get", "local", "--json"], lambda found: found["name"] == "local"),
        (["doctor", "--json"], lambda found: found["checks"][0]["ok"]),
    ]:
        ended = perdure(*command)
        assert (ended.code, ended.err) == (0, "")
        assert expected(json.loads(ended.out))


def test_piped_logs_are_the_bytes_as_they_were():
    data = bytes(range(256)) + "é".encode()[:1]
    script = (
        "import sys; sys.stdout.reconfigure(encoding='ascii')\n"
        "from perdure.cli.output import LogOutput\nfrom perdure.client.logs import LogPiece\n"
        "from tests.cli.conftest import a_job\n"
        "out = LogOutput(); job = a_job()\n"
        f"out.write(LogPiece(job, 0, {data!r}))\n"
        "out.write(LogPiece(job, 0, b'\\xa9', complete=True))\n"
        "out.end_line()"
    )
    answer = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=True, cwd=Path(__file__).parents[2]
    )
    assert answer.stdout == data + b"\xa9"


def test_the_next_attempt_is_marked_beside_the_log(perdure: Program, fake: FakeClient):
    first, second = a_job(submission=0), a_job(submission=1)
    fake.pieces = [
        LogPiece(first, 0, b"one\n"),
        LogPiece(first, 4, b"", complete=True, missing=True),
        LogPiece(second, 0, b""),
        LogPiece(second, 0, b"two\n"),
    ]
    ended = perdure("logs", "xx", "-f")
    assert "attempt 1" in ended.err
    assert ended.err.count("attempt") == 1
    assert "The end of this log is missing" in ended.err


def test_a_run_that_has_not_begun_has_no_log_and_that_is_no_error(
    perdure: Program, fake: FakeClient, monkeypatch: pytest.MonkeyPatch
):
    def nothing(*_: object, **__: object) -> None:
        raise NotStarted("run xx has not started a job: waiting for capacity")

    monkeypatch.setattr(FakeClient, "follow_logs", nothing)
    ended = perdure("logs", "xx")
    assert (ended.code, ended.out) == (0, "")
    assert ended.err == "Run xx has not started a job: waiting for capacity.\n"


def test_stop_waits_for_the_end_and_says_it(perdure: Program, fake: FakeClient):
    fake.run = a_run("xx", "running")
    assert perdure("stop", "xx", "-y").code == 0
    assert perdure("stop", "xx", "--abort", "-y").code == 0
    assert fake.stopped == [("xx", False), ("xx", True)]
    fake.run = a_run("xx", "done")
    assert "has ended already: done" in perdure("stop", "xx", "-y").err


def test_stop_asks_somebody_first(perdure: Program, fake: FakeClient, monkeypatch: pytest.MonkeyPatch):
    fake.run = a_run("xx", "running")
    monkeypatch.setattr("perdure.cli.stop.interactive", lambda: True)
    monkeypatch.setattr("perdure.cli.stop.confirm", lambda question: "Stop run xx?" not in question)
    assert perdure("stop", "xx").code == 0
    assert fake.stopped == []


def test_doctor_fails_when_something_is_broken(perdure: Program, fake: FakeClient):
    fake.checks = (
        api.Check(invariant="a", ok=True),
        api.Check(invariant="b", ok=False, findings=("x holds twice",)),
    )
    ended = perdure("doctor")
    assert ended.code == 1
    assert "x holds twice" in ended.out
    assert ended.out.endswith("\n1 invariant is broken.\n")
    fake.checks = fake.checks[:1]
    assert perdure("doctor").out.endswith("\nAll invariants hold.\n")


def test_a_fleet_is_made_by_apply(perdure: Program, fake: FakeClient):
    text = "type: fleet\nname: pool\nnodes: 0..2\n"
    assert perdure("apply", "-f", "-", "-y", input=text).code == 0
    ((name, configuration),) = fake.made_fleets
    assert (name, configuration["nodes"]) == ("pool", "0..2")
    assert "needs a name" in perdure("apply", "-f", "-", "-y", input="type: fleet\nnodes: 1\n").err


def a_fleet(**configuration: object) -> api.FleetRow:
    values = {"type": "fleet", "name": "pool", **configuration}
    return api.FleetRow(
        fleet_id=uuid4(), project="main", name="pool", status="active", created_at=NOW, configuration=values
    )


def test_a_change_of_a_fleet_says_what_changes(perdure: Program, fake: FakeClient):
    fake.fleet_rows = (a_fleet(nodes="0..2", placement="cluster"),)
    ended = perdure("apply", "-f", "-", "-y", input="type: fleet\nname: pool\nnodes: 0..8\nplacement: cluster\n")
    assert "Nodes  0..2 → 0..8" in ended.err
    assert "Placement" not in ended.err
    assert "Fleet pool is changed" in ended.err


def test_the_plan_of_a_fleet_is_in_words(perdure: Program, fake: FakeClient):
    text = (
        "type: fleet\nname: pool\nnodes: {min: 0, max: 3}\nbackends: [aws, local]\n"
        "resources: {cpu: {min: 2}, gpu: {name: [H100, A100], count: 8}}\nspot_policy: auto\ntags: {}\n"
    )
    shown = perdure("apply", "-f", "-", "-y", input=text).err
    rows = [tuple(re.split(r" {2,}", line.rstrip())) for line in shown.splitlines()[:6]]
    assert rows == [
        ("Fleet", "pool, new"),
        ("Nodes", "0..3"),
        ("Backends", "aws, local"),
        ("Resources", "cpu=2.. gpu=(name=(H100, A100) count=8)"),
        ("Spot policy", "auto"),
        ("Tags", "nothing"),
    ]


def test_a_fleet_that_is_as_it_should_be_is_left_alone(perdure: Program, fake: FakeClient):
    fake.fleet_rows = (a_fleet(nodes="0..2"),)
    assert "is so already" in perdure("apply", "-f", "-", "-y", input="type: fleet\nname: pool\nnodes: 0..2\n").err
    assert fake.made_fleets == []


def test_a_fleet_is_deleted_when_it_is_gone(perdure: Program, fake: FakeClient):
    fake.fleet_rows = (a_fleet(),)
    ended = perdure("fleet", "delete", "pool", "-y")
    assert (ended.code, fake.fleet_rows) == (0, ())
    assert "Fleet pool is deleted." in ended.err
    assert "no fleet pool" in perdure("fleet", "delete", "pool", "-y").err


def complete(perdure: Program, monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    monkeypatch.setenv("_PERDURE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "perdure " + " ".join(words))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    return perdure().out


def test_names_of_runs_and_fleets_are_completed(
    perdure: Program, fake: FakeClient, monkeypatch: pytest.MonkeyPatch
):
    fake.run = a_run("training", "running")
    fake.fleet_rows = (a_fleet(),)
    for command in (["stop"], ["logs"], ["run", "get"]):
        assert complete(perdure, monkeypatch, *command, "tr").split() == ["training"]
        assert complete(perdure, monkeypatch, *command, "x").split() == []
    assert complete(perdure, monkeypatch, "fleet", "delete", "p").split() == ["pool"]


def test_completion_without_an_installation_is_silent(perdure: Program, monkeypatch: pytest.MonkeyPatch):
    assert complete(perdure, monkeypatch, "logs", "t").strip() == ""


def test_schemas_are_json_schemas(perdure: Program):
    every = json.loads(perdure("schema").out)
    assert every["properties"]["type"]["enum"][:2] == ["dev-environment", "task"]
    assert "commands" in json.loads(perdure("schema", "task").out)["properties"]
    assert "configuration" in json.loads(perdure("schema", "run-request").out)["properties"]


def test_ports_of_a_job_here_are_told_as_addresses(perdure: Program, fake: FakeClient):
    job = a_job(status="running", address="127.0.0.2", ports=((8000, 8000),))
    fake.run = a_run("xx", "running", (job,))
    fake.pieces = [LogPiece(job, 0, b"x")]
    ended = perdure("apply", "-f", "-", "-y", input=GOOD)
    assert "Port 8000: http://127.0.0.2:8000" in ended.err
