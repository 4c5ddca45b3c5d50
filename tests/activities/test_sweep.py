"""The sweep, over workflows that a real Temporal knows, real rows and a real shim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from sqlalchemy import text
from temporalio.client import Client, WorkflowHandle

from activities.sweeping import Sweeping
from perdure.backends import Order, ProviderInstance
from perdure.model.events import ClaimFailed, ClaimGranted, JobEnded, JobStop
from perdure.model.ids import instance_workflow_id, job_workflow_id, log_key
from perdure.model.messages import ClaimRequest, Finding, JobEnd, JobStep, Nothing, Termination
from perdure.model.resources import Requirements
from perdure.model.statuses import ClaimStatus, JobReason, JobStatus
from perdure.store import claims, ends
from tests.activities.bench import Bench
from tests.activities.test_instances import Cloud
from tests.support.waiting import eventually

FOREVER = "while :; do sleep 0.1; done"


@dataclass
class Scene:
    """One run of one job on one instance, each with its workflow."""

    bench: Bench
    client: Client
    sweeping: Sweeping
    step: JobStep
    run: WorkflowHandle[Any, Any]
    job: WorkflowHandle[Any, Any]
    instance: WorkflowHandle[Any, Any]
    passes: list[Sequence[Finding]] = field(default_factory=list)

    async def sweep(self) -> list[Finding]:
        found = (await self.bench.call(self.sweeping.sweep, Nothing())).findings
        self.passes.append(found)
        return list(found)

    async def value(self, statement: str, **values: Any) -> Any:
        async with self.bench.world.database.transaction() as tx:
            return (await tx.execute(text(statement), values)).scalar_one()

    @property
    def ids(self) -> dict[str, UUID]:
        return {"job": self.step.key.job_id, "run": self.step.key.run_id}


@pytest_asyncio.fixture
async def scene(bench: Bench, temporal: Client) -> Scene:
    bench.world.temporal = temporal
    instance = await bench.instance()
    name = f"r{uuid4().hex[:10]}"
    run = await begin(temporal, f"run/main/{name}")
    run_id = UUID(run.first_execution_run_id)
    step = await bench.job(instance, f"echo begun; {FOREVER}", run_id=run_id, name=name)
    job = await begin(temporal, job_workflow_id(run_id, 0, 0, 0))
    keeper = await begin(temporal, instance_workflow_id(instance))
    return Scene(bench, temporal, Sweeping(bench.world), step, run, job, keeper)


async def begin(client: Client, workflow_id: str) -> WorkflowHandle[Any, Any]:
    """A workflow that stays open: no worker hears of it."""
    return await client.start_workflow("Any", id=workflow_id, task_queue="nobody")


async def bring_up(scene: Scene) -> None:
    assert (await scene.bench.submit(scene.step)).reason is None
    assert (await scene.bench.start(scene.step)).reason is None
    await eventually(lambda: scene.bench.printed(scene.step, b"begun"))


async def test_what_has_its_owners_is_left_alone(scene: Scene) -> None:
    await bring_up(scene)
    assert [await scene.sweep() for _ in range(3)] == [[], [], []]
    assert await scene.bench.tasks(scene.step.instance_id) == [scene.step.key.job_id]


async def test_a_terminated_run_and_its_job_are_ended_and_released(scene: Scene) -> None:
    await bring_up(scene)
    await scene.run.terminate()
    await scene.job.terminate()
    found = await scene.sweep()
    assert {one.kind for one in found} == {"lost-job", "closed-owner"}
    assert await scene.bench.tasks(scene.step.instance_id) == []
    job = await scene.bench.row(scene.step)
    assert (job.status, job.reason) == (JobStatus.TERMINATED, JobReason.TERMINATED_BY_SERVER)
    assert job.log_complete
    assert await scene.value("SELECT status FROM runs WHERE id = :run", run=scene.ids["run"]) == "terminated"
    assert await scene.value("SELECT reason FROM runs WHERE id = :run", run=scene.ids["run"]) == "aborted_by_user"
    assert await scene.value("SELECT count(*) FROM holdings") == 0
    assert await scene.value("SELECT count(*) FROM events WHERE kind = 'sweep'") == len(found)
    assert await scene.sweep() == []


async def test_the_job_of_a_terminated_run_is_told_to_stop_by_its_own_workflow(scene: Scene) -> None:
    await bring_up(scene)
    await scene.run.terminate()
    (finding,) = await scene.sweep()
    (nudge,) = finding.nudges
    assert nudge.workflow_id == scene.job.id
    assert nudge.news == JobStop(reason=JobReason.TERMINATED_BY_SERVER, message="the workflow of its run is closed")
    assert await scene.bench.tasks(scene.step.instance_id) == [scene.step.key.job_id]


async def test_a_run_whose_name_was_taken_by_a_later_one_is_closed(scene: Scene) -> None:
    await scene.run.terminate()
    await scene.job.terminate()
    await begin(scene.client, scene.run.id)
    await scene.sweep()
    assert await scene.value("SELECT status FROM runs WHERE id = :run", run=scene.ids["run"]) == "terminated"
    assert await scene.value("SELECT count(*) FROM holdings") == 0


async def test_a_run_hears_of_its_job_whose_workflow_is_gone(scene: Scene) -> None:
    await bring_up(scene)
    await scene.job.terminate()
    (finding,) = [one for one in await scene.sweep() if one.kind == "lost-job"]
    told = [nudge.news for nudge in finding.nudges if nudge.workflow_id == scene.run.id]
    assert isinstance(told[0], JobEnded)
    assert told[0].reason is JobReason.TERMINATED_BY_SERVER
    assert await scene.bench.tasks(scene.step.instance_id) == []


async def test_the_blocks_of_a_lost_job_wait_until_its_host_is_heard_from(scene: Scene) -> None:
    await bring_up(scene)
    scene.bench.kill_shim(scene.step.instance_id)
    scene.bench.kill_runners()
    scene.bench.world.timing = scene.bench.world.timing.but(abort_bound=0.2)
    await scene.job.terminate()
    await scene.sweep()
    assert await scene.value("SELECT count(*) FROM holdings WHERE quarantined_at IS NOT NULL") == 1
    assert "quarantine" not in {one.kind for one in await scene.sweep()}
    await scene.bench.revive(scene.step.instance_id)
    (finding,) = [one for one in await scene.sweep() if one.kind == "quarantine"]
    assert finding.settled
    assert await scene.value("SELECT count(*) FROM holdings") == 0
    assert await scene.bench.tasks(scene.step.instance_id) == []


async def test_an_instance_whose_workflow_is_closed_gets_another(scene: Scene) -> None:
    await scene.instance.terminate()
    (finding,) = await scene.sweep()
    assert finding.kind == "closed-instance"
    assert finding.start_instance is not None
    assert finding.start_instance.instance_id == scene.step.instance_id


async def test_an_instance_whose_workflow_was_never_started_gets_one(scene: Scene) -> None:
    forgotten = await scene.bench.pending_instance()
    (finding,) = await scene.sweep()
    assert finding.start_instance is not None
    assert finding.start_instance.instance_id == forgotten


async def test_what_temporal_does_not_know_is_not_closed(scene: Scene) -> None:
    scene.bench.world.timing = scene.bench.world.timing.but(sweep_grace=60.0)
    instance = await scene.bench.instance()
    step = await scene.bench.running(instance, FOREVER)
    assert [await scene.sweep() for _ in range(2)] == [[], []]
    assert await scene.bench.tasks(instance) == [step.key.job_id]


async def test_an_instance_that_no_row_knows_is_ended_at_second_sight(scene: Scene) -> None:
    orphan = await _orphan(scene.bench)
    assert await scene.sweep() == []
    (finding,) = await scene.sweep()
    assert (finding.kind, finding.subject, finding.settled) == ("orphan-instance", str(orphan), True)
    assert not await scene.bench.world.backends["local"].find(orphan)


async def test_instances_of_another_epoch_are_left_alone(scene: Scene) -> None:
    orphan = await _orphan(scene.bench, epoch=scene.bench.world.epoch + 1)
    assert [await scene.sweep() for _ in range(3)] == [[], [], []]
    assert await scene.bench.world.backends["local"].find(orphan)


async def test_many_orphans_at_once_are_only_reported(scene: Scene) -> None:
    world = scene.bench.world
    there = [ProviderInstance(uuid4(), world.installation, world.epoch, age=99.0) for _ in range(6)]

    class Restored(Cloud):
        async def list(self) -> list[ProviderInstance]:
            return there

        async def terminate(self, instance_id: UUID) -> Termination:
            raise AssertionError("it must not be ended")

    world.backends = {**world.backends, "cloud": Restored()}
    await scene.sweep()
    found = await scene.sweep()
    world.backends = {"local": world.backends["local"]}
    assert [one.kind for one in found] == ["orphan-instance"] * 6
    assert not any(one.settled for one in found)


async def test_a_grant_that_nobody_used_is_told_again(scene: Scene) -> None:
    await scene.bench.execute("DELETE FROM jobs WHERE id = :job", job=scene.ids["job"])
    (finding,) = await scene.sweep()
    (nudge,) = finding.nudges
    assert nudge.workflow_id == scene.run.id
    assert isinstance(nudge.news, ClaimGranted)
    assert (nudge.news.claim_id, nudge.news.ready) == (scene.step.claim_id, True)
    assert nudge.news.placements[0].instance_id == scene.step.instance_id


async def test_a_claim_that_failed_unheard_is_told_again(scene: Scene) -> None:
    await scene.bench.execute("DELETE FROM jobs WHERE id = :job", job=scene.ids["job"])
    await scene.bench.execute("DELETE FROM holdings")
    await scene.bench.execute("UPDATE instances SET status = 'idle', busy_blocks = 0")
    await scene.bench.execute("UPDATE claims SET status = 'failed', ended_at = now(), message = 'no host'")
    (finding,) = await scene.sweep()
    (nudge,) = finding.nudges
    assert isinstance(nudge.news, ClaimFailed)
    assert nudge.news.message == "no host"


async def test_an_end_that_the_run_did_not_hear_is_told_again(scene: Scene) -> None:
    await _end(scene)
    (finding,) = await scene.sweep()
    (nudge,) = finding.nudges
    assert nudge.workflow_id == scene.run.id
    assert isinstance(nudge.news, JobEnded)
    assert (nudge.news.reason, nudge.news.exit_status) == (JobReason.DONE_BY_RUNNER, 0)
    await scene.bench.execute("UPDATE jobs SET heard = true")
    assert await scene.sweep() == []


async def test_a_task_that_no_living_job_knows_is_removed_at_second_sight(scene: Scene) -> None:
    await bring_up(scene)
    await _end(scene)
    await scene.bench.execute("UPDATE jobs SET heard = true")
    assert await scene.sweep() == []
    (finding,) = await scene.sweep()
    assert (finding.kind, finding.subject) == ("stale-task", str(scene.ids["job"]))
    assert await scene.bench.tasks(scene.step.instance_id) == []


async def test_a_claim_that_waits_for_what_is_there_now_is_granted(scene: Scene) -> None:
    request = ClaimRequest(
        claim_id=uuid4(),
        run_id=scene.ids["run"],
        project="main",
        owner=scene.run.id,
        replica=1,
        submission=0,
        nodes=1,
        priority=0,
        requirements=Requirements(),
        wait=True,
    )
    async with scene.bench.world.database.transaction() as tx:
        assert (await claims.claim(tx, request, lambda _: [])).status is ClaimStatus.WAITING
    (finding,) = [one for one in await scene.sweep() if one.kind == "capacity"]
    (nudge,) = finding.nudges
    assert nudge.workflow_id == scene.run.id
    assert isinstance(nudge.news, ClaimGranted)
    assert nudge.news.claim_id == request.claim_id
    assert "capacity" not in {one.kind for one in await scene.sweep()}


async def test_one_bad_object_stops_no_other(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    await scene.instance.terminate()
    await scene.job.terminate()
    await scene.bench.execute("UPDATE runs SET spec = '{}'")
    found = await scene.sweep()
    assert [one.kind for one in found] == ["closed-instance"]
    assert "could not look at something" in caplog.text


async def test_what_is_older_than_the_retention_is_let_go_with_its_log(scene: Scene) -> None:
    await bring_up(scene)
    assert not (await scene.bench.remove(scene.step)).unreachable
    await _end(scene)
    await scene.bench.execute("UPDATE runs SET status = 'done', ended_at = now() - interval '1 hour'")
    await scene.sweep()
    key = log_key(scene.ids["job"])
    assert await scene.bench.world.blobs.read_log(key, 0, 5) == b"begun"
    scene.bench.world.retention_days = 0.001
    await scene.sweep()
    assert await scene.value("SELECT count(*) FROM runs") == 0
    assert await scene.bench.world.blobs.read_log(key, 0, 5) == b""


async def _orphan(bench: Bench, epoch: int | None = None) -> UUID:
    orphan = uuid4()
    (offer,) = bench.world.backends["local"].offers(Any)  # type: ignore[arg-type]
    order = Order(
        instance_id=orphan,
        name="orphan",
        installation=bench.world.installation,
        epoch=bench.world.epoch if epoch is None else epoch,
        token=uuid4().hex,
        offer=offer,
    )
    await bench.world.backends["local"].create(order)
    return orphan


async def _end(scene: Scene) -> None:
    end = JobEnd(
        key=scene.step.key,
        owner=scene.run.id,
        claim_id=scene.step.claim_id,
        instance_id=scene.step.instance_id,
        status=JobStatus.DONE,
        reason=JobReason.DONE_BY_RUNNER,
        exit_status=0,
        at=datetime.now(UTC),
    )
    async with scene.bench.world.database.transaction() as tx:
        await ends.end_job(tx, end, lambda _: [])
