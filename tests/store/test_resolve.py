from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from activities.fleets import Fleets
from activities.runs import Runs
from activities.world import World
from perdure.model.messages import FleetRecord, Resolved, ResolveRun
from perdure.spec.effective import RegistryAuth, Sealed
from perdure.store import runs
from perdure.store.database import Database
from tests.support.inventory import Inventory, now

TASK = {"type": "task", "commands": ["true"]}


@pytest.fixture
def world(database: Database) -> World:
    return World(
        database=database,
        blobs=None,  # type: ignore[arg-type]
        backends={},
        agents=None,  # type: ignore[arg-type]
        temporal=None,  # type: ignore[arg-type]
        installation=UUID(int=1),
        epoch=1,
        private_key=b"",
        worker="test",
        incarnation=UUID(int=2),
    )


async def _resolve(
    world: World, request: Any, workflow_id: str = "run/main/train", run_id: UUID | None = None
) -> Resolved:
    wanted = ResolveRun(workflow_id=workflow_id, run_id=run_id or uuid4(), request=request, submitted_at=now())
    return await Runs(world).resolve_run(wanted)


async def test_run_is_resolved_once_and_its_code_marked_used(world: World, inventory: Inventory):
    run_id = uuid4()
    code = [{"sha256": "a" * 64, "size": 3}, {"sha256": "a" * 64, "size": 3}]
    first = await _resolve(world, {"configuration": TASK, "code": code, "user": "ann"}, run_id=run_id)
    again = await _resolve(world, {"configuration": {**TASK, "priority": 9}}, run_id=run_id)
    assert first.policy is not None and first.policy.user == "ann"
    assert again == first
    assert len(await inventory.rows("SELECT * FROM runs")) == 1
    assert [row.sha256 for row in await inventory.rows("SELECT sha256 FROM archives")] == ["a" * 64]


@pytest.mark.parametrize("request_", [None, [1], {"x": 1}, "text", {"configuration": None}, {"configuration": [1]}])
async def test_malformed_input_is_an_error_and_leaves_no_row(world: World, inventory: Inventory, request_: object):
    found = await _resolve(world, request_)
    assert found.policy is None and found.errors
    assert not await inventory.rows("SELECT * FROM runs")


async def test_a_refusal_is_an_event_whatever_the_request_holds(world: World, inventory: Inventory):
    await inventory.fleet()
    request = {"configuration": {**TASK, "k\0": 1}, "user": "an\0n"}
    assert (await _resolve(world, request)).errors
    (row,) = await inventory.rows("SELECT actor, status, words FROM events WHERE kind = 'run'")
    assert (row.actor, row.status) == ("user ann", "refused")
    assert "is not a key known here" in row.words


@pytest.mark.parametrize("workflow_id", ["x", "run/main", "run/main/X!", "run/a/b/c", "job/main/x"])
async def test_workflow_id_must_name_project_and_run(world: World, workflow_id: str):
    found = await _resolve(world, {"configuration": TASK}, workflow_id)
    assert found.policy is None
    assert [error.hint for error in found.errors] == ["start it as run/{project}/{name}, such as run/main/train"]


async def test_another_name_inside_is_refused(world: World):
    found = await _resolve(world, {"configuration": {**TASK, "name": "other"}})
    assert [error.path for error in found.errors] == ["name"]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"nodes": None}, "nodes"),
        ({"blocks": "auto"}, "blocks"),
        ({"name": "other"}, "name"),
        ({"nods": 1}, "nods"),
    ],
)
async def test_wrong_fleet_says_where(world: World, inventory: Inventory, change: dict[str, Any], path: str):
    configuration = {"type": "fleet", "nodes": "0..2", **change}
    configuration = {key: value for key, value in configuration.items() if value is not None}
    view = await Fleets(world).record_fleet(FleetRecord(project="main", name="local", configuration=configuration))
    assert path in [error.path for error in view.errors]
    assert not await inventory.rows("SELECT * FROM fleets")


async def test_fleet_is_written_as_configured(world: World, inventory: Inventory):
    configuration = {"type": "fleet", "nodes": "0..2", "placement": "cluster", "idle_duration": "off"}
    view = await Fleets(world).record_fleet(FleetRecord(project="main", name="local", configuration=configuration))
    assert view.fleet_id is not None and view.live == 0
    (row,) = await inventory.rows("SELECT nodes_min, nodes_max, placement, idle_duration FROM fleets")
    assert tuple(row) == (0, 2, "cluster", None)


async def test_who_applied_a_fleet_made_it(world: World, inventory: Inventory):
    record = FleetRecord(project="main", name="pool", configuration={"type": "fleet", "nodes": "1..2"}, user="ann")
    await Fleets(world).record_fleet(record)
    changed = record.but(configuration={"type": "fleet", "nodes": "1..3"}, user="")
    await Fleets(world).record_fleet(changed)
    rows = await inventory.rows("SELECT actor, kind FROM events WHERE fleet_id IS NOT NULL ORDER BY id")
    assert [tuple(row) for row in rows] == [("user ann", "fleet"), ("workflow", "fleet")]


@pytest.mark.parametrize(
    "file", sorted((Path(__file__).parent / "specs").glob("*.json")), ids=lambda file: file.stem
)
async def test_a_run_that_an_earlier_version_stored_is_read(
    world: World, database: Database, inventory: Inventory, file: Path
):
    run_id = uuid4()
    await _resolve(world, {"configuration": TASK}, run_id=run_id)
    async with database.transaction() as tx:
        await tx.execute(
            text("UPDATE runs SET spec = CAST(:spec AS jsonb) WHERE id = :id"),
            {"spec": file.read_text(), "id": run_id},
        )
        run = await runs.effective(tx, run_id)
    assert run is not None
    assert run.commands == ("python train.py --x 1",)
    assert run.env == {"A": "1", "TOKEN": Sealed(sealed="c2VhbGVk")}
    assert run.registry_auth == RegistryAuth(username="me", password=Sealed(sealed="c2VhbGVk"))
    assert run.policy.retry is not None and run.policy.retry.max_attempts == 3
