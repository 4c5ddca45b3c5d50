"""What is in force is shown, and fits into what may travel."""

from __future__ import annotations

import pytest

from perdure import spec
from perdure.spec.fleet_layer import under_fleet
from perdure.spec.reading import read
from tests.spec.support import resolve, task

TAGS = {size: "{" + ", ".join(f"t{n:_<50}: {'x' * 256}" for n in range(size)) + "}" for size in (1, 99)}
WIDE = {
    "variables": "env: {" + ", ".join(f"V{n}: x" for n in range(9_000)) + "}",
    "long names of variables": "env: {" + ", ".join(f"V{n}{'_' * 1000}: x" for n in range(90)) + "}",
    "tags": f"tags: {TAGS[99]}",
    "everything": "\n".join(
        [
            *(f"{name}: [" + "é1, " * 400 + "]" for name in ("regions", "instance_types")),
            *(f"{name}: '" + "é" * 5_000 + "'" for name in ("image", "user", "home_dir")),
            "ports: [" + "80, " * 30 + "]",
            f"tags: {TAGS[99]}",
            "env: {" + ", ".join(f"V{n}: x" for n in range(9_000)) + "}",
        ]
    ),
}


@pytest.mark.parametrize("what", WIDE)
def test_all_that_is_in_force_travels_in_one_payload(what: str) -> None:
    run = resolve(task(WIDE[what]), sealed={f"W{n}": "" for n in range(200)})
    fleet = spec.parse_fleet({"type": "fleet", "nodes": 1, "tags": {f"f{n}": "y" * 250 for n in range(99)}})
    for rows in (run.values, under_fleet(run.values, fleet, "gpus")):
        assert sum(len(row.model_dump_json().encode()) for row in rows) < 50 * 1024
        fields = {row.path for row in rows}
        assert {"type", "image", "env", "tags", "stop_grace", "dstack"} <= fields
        more = [row for row in rows if row.label == "more"]
        assert more == [] or (more == [rows[-1]] and more[0].value == f"{more[0].data} more values")


def test_what_does_not_travel_is_counted() -> None:
    few, many = (resolve(task(f"tags: {TAGS[size]}")).values for size in (1, 99))
    assert many[-1].label == "more"
    assert len(many) - 1 + many[-1].data == len(few) + 98
    assert len(many) < len(few) + 98


@pytest.mark.parametrize(
    ("text", "shell", "user"),
    [("image: i", "sh", "the image's own"), ("", "bash", "the default image's, or the agent's of a process")],
)
def test_what_depends_on_the_image_is_shown_as_it_is_in_this_run(text: str, shell: str, user: str) -> None:
    rows = {row.path: row.value for row in resolve(task(text)).values}
    assert (rows["shell"], rows["user"], rows["working_dir"]) == (shell, user, user)
    assert {row.path: row.value for row in read(task(text)).effective}["shell"] == shell


def test_no_two_rows_are_called_the_same() -> None:
    rows = resolve(task("image: i")).values
    names = [row.path or row.label for row in rows]
    assert sorted(names) == sorted(set(names))
    assert {row.label: row.data for row in rows if not row.path}["project"] == "main"
