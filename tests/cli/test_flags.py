"""Flags stand above the configuration and a profile below it: what they say travels, and a mistake names them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from perdure.cli.flags import OFFER_FLAGS, RUN_FLAGS, Flag, written
from perdure.model import api
from perdure.model.errors import FieldError, InvalidConfiguration
from perdure.model.origins import EffectiveValue, Origin
from perdure.spec import parse_flags
from tests.cli.conftest import NOW, FakeClient, Program, a_run

GOOD = "type: task\nname: xx\ncommands: [echo]\n"
PROFILES = """\
profiles:
  - name: large
    default: true
    max_price: 3
  - name: patient
    retry: true
"""


@pytest.fixture(autouse=True)
def at_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A home folder without profiles."""
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))


def applied(perdure: Program, fake: FakeClient, *arguments: str, text: str = GOOD) -> Any:
    ended = perdure("apply", "-f", "-", "-y", "-d", *arguments, input=text)
    assert ended.code == 0, ended.err
    (planned,) = fake.planned
    (request,) = fake.applied
    fake.planned.clear()
    fake.applied.clear()
    assert (request.flags, request.profile) == (planned.flags, planned.profile)
    return request


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--gpu A100:2 --cpu 4.. --memory 16GB --disk 1TB", None),
        ("--max-price 2.5", {"max_price": "2.5"}),
        ("-b local -b aws --backend gcp", {"backends": ["local", "aws", "gcp"]}),
        ("-r eu --region us", {"regions": ["eu", "us"]}),
        ("--instance-type p5.48xlarge", {"instance_types": ["p5.48xlarge"]}),
        ("--fleet one --fleet two", {"fleets": ["one", "two"]}),
        ("--spot", {"spot_policy": "spot"}),
        ("--on-demand", {"spot_policy": "on-demand"}),
        ("--spot-auto", {"spot_policy": "auto"}),
        ("--spot-policy auto", {"spot_policy": "auto"}),
        ("-R", {"creation_policy": "reuse"}),
        ("--reuse --idle-duration 10m", {"creation_policy": "reuse", "idle_duration": "10m"}),
        ("--creation-policy reuse-or-create", {"creation_policy": "reuse-or-create"}),
        ("--dont-destroy", {"idle_duration": "off"}),
        ("--max-duration off", {"max_duration": "off"}),
        ("--retry", {"retry": True}),
        ("--no-retry", {"retry": False}),
        ("--retry-duration 2h", {"retry": {"duration": "2h"}}),
        ("--priority 70", {"priority": "70"}),
        ("-p 8000 --port 80:8080", {"ports": ["8000", "80:8080"]}),
    ],
)
def test_a_flag_is_a_place_in_the_configuration(
    perdure: Program, fake: FakeClient, arguments: str, said: dict[str, Any] | None
):
    resources = {"resources": {"gpu": "A100:2", "cpu": "4..", "memory": "16GB", "disk": "1TB"}}
    assert applied(perdure, fake, *arguments.split()).flags == (said if said is not None else resources)


@pytest.mark.parametrize("flag", [*RUN_FLAGS, *OFFER_FLAGS], ids=lambda flag: flag.name)
def test_every_flag_is_of_a_field_that_runs_have(flag: Flag):
    value = True if flag.switch is not None else ["@!"] if flag.many else "\0"
    given = written([(flag, value)])
    try:
        parse_flags(given.mapping)
    except InvalidConfiguration as error:
        assert flag.switch is None
        assert [given.flag_of(one.path) for one in error.errors] == [flag.name]
        assert "known here" not in str(error)


@pytest.mark.parametrize(
    "arguments",
    [
        "--spot --on-demand",
        "--spot-auto --spot-policy spot",
        "--retry --no-retry",
        "--no-retry --retry-duration 1h",
        "--dont-destroy --idle-duration 5m",
        "--reuse --creation-policy reuse",
        "--repo . --no-repo",
        "--profile large --no-profile",
    ],
)
def test_two_answers_to_one_question_are_refused(perdure: Program, fake: FakeClient, arguments: str):
    ended = perdure("apply", "-f", "-", "-y", *arguments.split(), input=GOOD)
    assert ended.code == 2
    assert "cannot be given together" in " ".join(ended.err.replace("│", "").split())
    assert fake.planned == []


def test_a_wrong_flag_is_named_beside_the_mistakes_of_the_file(perdure: Program, fake: FakeClient):
    text = GOOD + "nodes: x\n"
    ended = perdure("apply", "-f", "-", "-y", "--gpu", "A100:", "-b", "aws", "-b", "nope", input=text)
    assert ended.code == 1
    assert "the command line: --gpu: " in ended.err
    assert "the command line: --backend: is not a backend we know: 'nope'" in ended.err
    assert "<stdin>:4:8: nodes: is 'x'" in ended.err
    assert fake.planned == []


def test_a_repository_is_looked_for_from_here(perdure: Program, fake: FakeClient, tmp_path: Path):
    (tmp_path / "code").mkdir()
    (tmp_path / "code/train.py").write_text("print()")
    subprocess.run(["git", "init", "-q", tmp_path / "code"], check=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/run.yml").write_text(GOOD + "repos: [gone]\n")
    arguments = ("apply", "-f", "other/run.yml", "-y", "-d")
    assert perdure(*arguments, "-P", "code").code == 0
    assert perdure(*arguments, "--no-repo").code == 0
    one, none = fake.applied
    assert one.flags == {"repos": [str(tmp_path / "code")]}
    assert (none.flags, none.code) == ({"repos": []}, ())
    assert [code.kind for code in one.code] == ["repo"]
    ended = perdure(*arguments, "-P", "nowhere")
    assert (ended.code, "the command line: --repo: there is no" in ended.err) == (1, True)


def test_an_empty_value_is_a_value(perdure: Program, fake: FakeClient):
    ended = perdure("apply", "-f", "-", "-y", "--max-duration", "", input=GOOD)
    assert (ended.code, "--max-duration: is not a duration: ''" in ended.err) == (1, True)


def test_a_flag_that_this_kind_of_run_does_not_have_is_refused(perdure: Program, fake: FakeClient):
    service = "type: service\nname: xx\ncommands: [serve]\nport: 80\n"
    ended = perdure("apply", "-f", "-", "-y", "-p", "80", input=service)
    assert ended.code == 1
    assert "the command line: --port: is not a key known here" in ended.err


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("type: service\ncommands: [serve]\nport: 80\n", "1:7: type"),
        ("type: volume\nname: data\nbackend: aws\nregion: eu-west-1\nsize: 100GB\n", "1:7: type"),
        (GOOD + "reservation: r-1\n", "4:14: reservation"),
        ("type: fleet\nname: pool\nssh_config: {user: u, identity_file: k, hosts: [a]}\n", "3:13: ssh_config"),
    ],
)
def test_what_this_version_cannot_do_is_refused_and_not_called_wrong(
    perdure: Program, fake: FakeClient, text: str, path: str
):
    ended = perdure("apply", "-f", "-", "-y", input=text)
    assert ended.code == 1
    assert ended.err.startswith("Error: this version cannot do yet what <stdin> says\n")
    assert f"<stdin>:{path}: " in ended.err
    assert "not valid" not in ended.err
    assert (fake.planned, fake.made_fleets) == ([], [])


def test_a_fleet_takes_from_the_profile_what_fleets_have(perdure: Program, fake: FakeClient, tmp_path: Path):
    (tmp_path / ".perdure").mkdir()
    (tmp_path / ".perdure/profiles.yml").write_text(PROFILES + "    max_duration: 1h\n    max_price: 2\n")
    text = "type: fleet\nname: pool\nnodes: 0..2\n"
    assert perdure("apply", "-f", "-", "-y", "--profile", "large", input=text).code == 0
    ((_, configuration),) = fake.made_fleets
    assert configuration == {"type": "fleet", "name": "pool", "nodes": "0..2", "max_price": 3}


def test_a_fleet_takes_no_flags_but_its_name(perdure: Program, fake: FakeClient):
    text = "type: fleet\nnodes: 0..2\n"
    ended = perdure("apply", "-f", "-", "-y", "-n", "pool", "--spot", input=text)
    assert (ended.code, "--spot is for runs" in ended.err) == (1, True)
    assert perdure("apply", "-f", "-", "-y", "-n", "pool", input=text).code == 0
    assert [name for name, _ in fake.made_fleets] == ["pool"]


def test_the_profile_that_holds_travels_as_it_is_written(perdure: Program, fake: FakeClient, tmp_path: Path):
    (tmp_path / ".perdure").mkdir()
    (tmp_path / ".perdure/profiles.yml").write_text(PROFILES)
    assert applied(perdure, fake).profile == {"name": "large", "default": True, "max_price": 3}
    assert applied(perdure, fake, "--profile", "patient").profile == {"name": "patient", "retry": True}
    assert applied(perdure, fake, "--no-profile").profile == {}
    ended = perdure("apply", "-f", "-", "-y", "--profile", "patent", input=GOOD)
    assert (ended.code, "did you mean patient?" in ended.err) == (1, True)


def test_a_wrong_profile_is_told_with_its_file_and_line(perdure: Program, fake: FakeClient, tmp_path: Path):
    (tmp_path / ".dstack").mkdir()
    (tmp_path / ".dstack/profiles.yml").write_text(PROFILES + "    imagee: x\n")
    ended = perdure("apply", "-f", "-", "-y", "--profile", "patient", input=GOOD)
    assert ended.code == 1
    assert ".dstack/profiles.yml:7:5: profiles[1].imagee: is not a key known here" in ended.err
    assert "\n  7 │     imagee: x\n    │     ^^^^^^\n" in ended.err


def test_what_the_worker_finds_wrong_in_a_layer_is_placed_in_it(perdure: Program, fake: FakeClient, tmp_path: Path):
    (tmp_path / ".perdure").mkdir()
    (tmp_path / ".perdure/profiles.yml").write_text(PROFILES)
    fake.plan_answer = api.Plan(
        name="xx",
        errors=(
            FieldError(path="resources.gpu", message="is odd", layer="flag"),
            FieldError(path="max_price", message="is odd", layer="profile"),
            FieldError(path="commands[0]", message="is odd"),
        ),
    )
    ended = perdure("apply", "-f", "-", "-y", "--gpu", "1", input=GOOD)
    for line in (
        "the command line: --gpu: is odd",
        ".perdure/profiles.yml:4:16: max_price: is odd",
        "<stdin>:3:12: commands[0]: is odd",
    ):
        assert f"\n{line}\n" in ended.err


def test_a_run_is_the_same_when_all_its_layers_are(
    perdure: Program, fake: FakeClient, somebody: None, tmp_path: Path
):
    (tmp_path / ".perdure.yml").write_text(GOOD + "max_price: 3\n")
    fake.run = a_run("xx", "running", configuration={"type": "task", "commands": ["echo"], "max_price": 3})
    active = api.ActiveRun(run_id=fake.run.run_id, status="running", submitted_at=NOW)
    fake.plan_answer = fake.plan_answer.but(active=active)
    same = "with this same configuration"
    assert same in perdure("apply", input="leave\n").err
    assert same not in perdure("apply", "--max-price", "2", input="leave\n").err
    assert same not in perdure("apply", "--retry", input="leave\n").err


def test_offers_are_asked_for_with_flags_above_resources_above_the_profile(
    perdure: Program, fake: FakeClient, tmp_path: Path
):
    (tmp_path / ".perdure").mkdir()
    (tmp_path / ".perdure/profiles.yml").write_text(
        PROFILES + "    regions: [eu]\n    schedule: {cron: '0 3 * * *'}\n"
    )
    asked = ["offer", "--profile", "patient", "--resources", "gpu: A100, cpu: 8", "--gpu", "H100:2", "--spot-auto"]
    assert perdure(*asked).code == 0
    assert fake.asked == [
        {"resources": {"gpu": "H100:2", "cpu": 8}, "spot_policy": "auto", "regions": ["eu"]},
    ]
    ended = perdure("offer", "--gpu", ":")
    assert (ended.code, "the command line: --gpu: " in ended.err) == (1, True)
    ended = perdure("offer", "--resources", "gpuu: 1")
    assert (ended.code, "--resources:1:13: resources.gpuu" in ended.err) == (1, True)


def test_help_shows_every_flag_with_an_example(perdure: Program):
    for command, flags in (("apply", RUN_FLAGS), ("offer", OFFER_FLAGS)):
        told = perdure(command, "--help").out
        for flag in flags:
            assert flag.name in told
    assert "nvidia:80GB:1..8" in told


def test_the_plan_says_which_flag_or_profile_has_a_value_and_stays_short(perdure: Program, fake: FakeClient):
    def value(path: str, origin: Origin) -> EffectiveValue:
        return EffectiveValue(label=path.replace("_", " "), value="v", path=path, origin=origin)

    fake.plan_answer = fake.plan_answer.but(
        effective=(
            value("spot_policy", Origin(layer="flag", name="--spot-policy", path="spot_policy")),
            value("regions", Origin(layer="profile", name="large", path="regions")),
            value("max_price", Origin(layer="configuration", path="max_price")),
            value("python", Origin()),
        )
    )
    said = perdure("apply", "-f", "-", "-y", "-d", "--spot", input=GOOD).err
    assert "Spot policy  v (--spot)" in said
    assert "v (profile large)" in said
    assert "Max price    v" in said
    assert "Python" not in said
    assert "1 more field is at the default: --explain shows all" in said


@pytest.mark.parametrize(
    ("words", "known"),
    [
        ("apply --profile l", ["large"]),
        ("validate --profile ", ["large", "patient"]),
        ("apply --spot-policy ", ["auto", "on-demand", "spot"]),
        ("offer --creation-policy reuse-", ["reuse-or-create"]),
    ],
)
def test_values_of_flags_are_completed(
    perdure: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: str, known: list[str]
):
    (tmp_path / ".perdure").mkdir()
    (tmp_path / ".perdure/profiles.yml").write_text(PROFILES)
    monkeypatch.setenv("_PERDURE_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", f"perdure {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" "))))
    assert sorted(perdure().out.split()) == known
