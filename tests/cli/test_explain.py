"""``perdure apply --explain``: every value in force with what says so, and nothing is submitted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perdure.model import api
from perdure.model.errors import ControlPlaneError, FieldError
from perdure.model.origins import EffectiveValue, Layer, Origin
from tests.cli.conftest import FakeClient, Program

GOOD = "type: task\nname: xx\ncommands: [echo]\nresources:\n  gpu: 1\nenv: [PERDURE_NOT_SET]\n"
PROFILES = "profiles:\n  - name: large\n    max_price: 3\n"
EFFECTIVE = (
    EffectiveValue(label="name", value="xx", path="name", origin=Origin(layer="configuration", path="name")),
    EffectiveValue(
        label="gpu",
        value="A100",
        path="resources.gpu",
        origin=Origin(layer="flag", name="--gpu", path="resources.gpu"),
    ),
    EffectiveValue(
        label="max price",
        value="$3/h",
        path="max_price",
        data=3,
        origin=Origin(layer="profile", name="large", path="max_price"),
    ),
    EffectiveValue(
        label="idle duration",
        value="1h",
        path="idle_duration",
        data=3600,
        origin=Origin(layer="fleet", name="pool", path="idle_duration"),
    ),
    EffectiveValue(label="nodes", value="1", path="nodes", data=1),
)


@pytest.fixture(autouse=True)
def written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fake: FakeClient) -> None:
    """train.yml, a profile large, and a worker that says what is in force."""
    monkeypatch.setenv("HOME", str(tmp_path / "nobody"))
    (tmp_path / "train.yml").write_text(GOOD)
    (tmp_path / ".perdure").mkdir()
    (tmp_path / ".perdure/profiles.yml").write_text(PROFILES)
    fake.plan_answer = fake.plan_answer.but(effective=EFFECTIVE, warnings=("that is odd",))


ASKED = ("apply", "-f", "train.yml", "--explain", "--gpu", "A100", "--profile", "large")


def test_every_value_is_shown_with_where_it_is_from(perdure: Program, fake: FakeClient):
    ended = perdure(*ASKED)
    assert ended.code == 0
    rows = [line.rstrip().split(maxsplit=2) for line in ended.out.splitlines()[2:]]
    assert rows == [
        ["name", "xx", "train.yml:2"],
        ["resources.gpu", "A100", "--gpu"],
        ["max_price", "$3/h", "profile large, .perdure/profiles.yml:3"],
        ["idle_duration", "1h", "fleet pool"],
        ["nodes", "1", "default"],
    ]
    assert ended.err == "Warning: that is odd\n"
    (request,) = fake.planned
    assert request.have_env == ("PERDURE_NOT_SET",)
    assert request.flags == {"resources": {"gpu": "A100"}}
    assert fake.applied == []


def test_a_whole_whose_parts_are_from_several_layers_is_left_to_them(perdure: Program, fake: FakeClient):
    def value(path: str, layer: Layer) -> EffectiveValue:
        return EffectiveValue(label=path, value="v", path=path, origin=Origin(layer=layer, path=path))

    fake.plan_answer = fake.plan_answer.but(
        effective=(
            EffectiveValue(label="project", value="main"),
            value("resources", "flag"),
            value("resources.gpu", "flag"),
            value("resources.cpu", "configuration"),
            value("retry", "configuration"),
            value("retry.duration", "default"),
        )
    )
    rows = [line.rstrip().split(maxsplit=2)[2:] for line in perdure(*ASKED).out.splitlines()[2:]]
    assert rows == [[], [], ["--gpu"], ["train.yml:4"], ["configuration"], ["default"]]


def test_a_name_that_nobody_gave_is_made_up(perdure: Program, fake: FakeClient):
    fake.plan_answer = fake.plan_answer.but(effective=EFFECTIVE[:1])
    told = perdure("apply", "--explain", "-f", "-", input="type: task\ncommands: [a]\n").out
    assert told.splitlines()[2].split(maxsplit=2) == ["name", "xx", "made up"]


def test_variables_of_the_command_line_are_in_force_too(perdure: Program, fake: FakeClient):
    perdure(*ASKED, "-e", "TOKEN=secret")
    (request,) = fake.planned
    assert request.have_env == ("PERDURE_NOT_SET", "TOKEN")
    assert "secret" not in request.model_dump_json()


def test_json_has_file_and_line_of_each_value(perdure: Program, fake: FakeClient):
    ended = perdure(*ASKED, "--json")
    assert (ended.code, ended.err) == (0, "")
    found = json.loads(ended.out)
    assert (found["kind"], found["profile"], found["warnings"]) == ("task", "large", ["that is odd"])
    places = {one["path"]: (one["origin"]["layer"], one["file"], one["line"]) for one in found["effective"]}
    assert places == {
        "name": ("configuration", "train.yml", 2),
        "resources.gpu": ("flag", None, None),
        "max_price": ("profile", ".perdure/profiles.yml", 3),
        "idle_duration": ("fleet", None, None),
        "nodes": ("default", None, None),
    }
    assert fake.applied == []


def test_what_is_wrong_is_told_instead(perdure: Program, fake: FakeClient):
    fake.plan_answer = api.Plan(
        name="xx", errors=(FieldError(path="resources.gpu", message="is odd", layer="flag"),)
    )
    ended = perdure(*ASKED)
    assert (ended.code, ended.out) == (1, "")
    assert "the command line: --gpu: is odd" in ended.err
    ended = perdure("apply", "--explain", "-f", "-", input="type: task\nnope: 1\n")
    assert (ended.code, "<stdin>:2:1: nope" in ended.err) == (1, True)


def test_without_a_worker_all_but_the_fleet_is_known(
    perdure: Program, fake: FakeClient, monkeypatch: pytest.MonkeyPatch
):
    async def away(*_: object) -> None:
        raise ControlPlaneError("no worker is running")

    monkeypatch.setattr(FakeClient, "plan", away)
    monkeypatch.setenv("COLUMNS", "200")
    ended = perdure(*ASKED)
    assert ended.code == 0
    assert "train.yml:2" in ended.out
    assert "profile large, .perdure/profiles.yml:3" in ended.out
    assert "Warning: what a fleet adds is not known: no worker is running" in ended.err


@pytest.mark.parametrize(
    "text",
    [
        "type: service\ncommands: [serve]\nport: 80\n",
        "type: dev-environment\nide: vscode\n",
        "type: fleet\nname: pool\nnodes: 0..2\n",
        "type: volume\nname: data\nbackend: aws\nregion: eu-west-1\nsize: 100GB\n",
        "type: gateway\nname: gate\nbackend: aws\nregion: eu-west-1\ndomain: example.com\n",
        "type: task\ncommands: [a]\nreservation: mine\n",
    ],
)
def test_any_kind_is_explained(perdure: Program, fake: FakeClient, text: str):
    ended = perdure("apply", "--explain", "-f", "-", input=text)
    assert ended.code == 0, ended.err
    assert "type " in ended.out
    assert "<stdin>:1" in ended.out
    assert fake.planned == []


@pytest.mark.parametrize(
    "arguments", [("apply", "-f", "train.yml", "--explain"), ("apply", "-f", "train.yml", "-y"), ("offer",)]
)
def test_json_is_also_what_a_mistake_is_told_in(perdure: Program, tmp_path: Path, arguments: tuple[str, ...]):
    (tmp_path / "train.yml").write_text("type: task\ncommands: [echo]\nmax_duration: 3x\n")
    (tmp_path / ".perdure/profiles.yml").write_text("profiles: [{name: large, max_price: x}]\n")
    ended = perdure(*arguments, "--profile", "large", "--json")
    assert (ended.code, ended.err) == (1, "")
    mistakes = [(it["file"], it["line"], it["path"]) for it in json.loads(ended.out)["errors"]]
    of_the_file = [("train.yml", 3, "max_duration")] if "apply" in arguments else []
    assert mistakes == [*of_the_file, (".perdure/profiles.yml", 1, "profiles[0].max_price")]


def test_json_tells_what_the_worker_does_not_take_and_what_is_not_yaml(
    perdure: Program, fake: FakeClient, tmp_path: Path
):
    fake.plan_answer = api.Plan(name="x", errors=(FieldError(path="env", message="refers to secrets.hf"),))
    ended = perdure(*ASKED, "--json")
    assert (ended.code, json.loads(ended.out)["errors"][0]["line"]) == (1, 6)
    (tmp_path / "train.yml").write_text("type: [")
    ended = perdure(*ASKED, "--json")
    assert (ended.code, json.loads(ended.out)["errors"][0]["file"]) == (1, "train.yml")
