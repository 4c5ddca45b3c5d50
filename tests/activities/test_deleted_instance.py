"""An instance whose folder somebody deleted: on ``local`` that is the provider's word that it is gone."""

from __future__ import annotations

import asyncio
import shutil
import time
from datetime import UTC, datetime

from sqlalchemy import text

from activities.instances import Instances
from activities.sweeping.agents import AgentsLook
from activities.sweeping.suspicion import Suspicion
from perdure.model.ids import instance_workflow_id
from perdure.model.messages import InstanceRef, JobEnd, JobOutcome, JobStep
from perdure.model.statuses import JOB_REASONS, JobReason
from perdure.store import ends
from tests.activities.bench import Bench

PATIENT = 600.0


async def test_its_job_and_it_are_lost_at_once(bench: Bench) -> None:
    bench.world.timing = bench.world.timing.but(contact_lost=PATIENT, abort_bound=PATIENT, provisioning=PATIENT)
    instance = await bench.instance()
    step = await bench.running(instance, "echo ready; sleep 1000")
    watch = asyncio.create_task(bench.watch(step))
    begun = time.monotonic()
    shutil.rmtree(bench.folder(instance).path)
    outcome = await watch
    assert outcome.reason is JobReason.INSTANCE_UNREACHABLE
    assert "was deleted" in outcome.message
    removed = await bench.remove(step)
    assert removed.instance_gone
    assert time.monotonic() - begun < PATIENT / 2
    async with bench.world.database.transaction() as tx:
        nudges = await ends.end_job(tx, _end(step, outcome, removed), lambda _: [])
    assert instance_workflow_id(instance) in {nudge.workflow_id for nudge in nudges}
    assert await _row(bench, instance) == ("terminating", "unreachable", 0)
    ended = await bench.call(Instances(bench.world).terminate_instance, InstanceRef(instance_id=instance))
    assert ended.gone


async def test_a_job_that_comes_to_it_is_told_at_once(bench: Bench) -> None:
    bench.world.timing = bench.world.timing.but(contact_lost=PATIENT, abort_bound=PATIENT, provisioning=PATIENT)
    instance = await bench.instance()
    step = await bench.job(instance, "true")
    shutil.rmtree(bench.folder(instance).path)
    for bring_up in (bench.submit, bench.start):
        outcome = await bring_up(step)
        assert (outcome.reason, outcome.instance_gone) == (JobReason.INSTANCE_UNREACHABLE, True)


async def test_the_loss_of_a_spot_instance_is_an_interruption(bench: Bench) -> None:
    instance = await bench.instance()
    spot = """UPDATE instances SET offer = offer || '{"spot": true}' WHERE id = :id"""
    await bench.execute(spot, id=instance)
    step = await bench.job(instance, "true")
    shutil.rmtree(bench.folder(instance).path)
    for step_of_job in (bench.submit, bench.watch):
        assert (await step_of_job(step)).reason is JobReason.INTERRUPTED_BY_NO_CAPACITY


async def test_the_sweep_finds_one_that_nobody_uses(bench: Bench) -> None:
    instance = await bench.instance()
    look = AgentsLook(bench.world, Suspicion())
    assert await look.look() == []
    shutil.rmtree(bench.folder(instance).path)
    (finding,) = await look.look()
    assert (finding.kind, finding.subject) == ("lost-instance", str(instance))
    assert [nudge.workflow_id for nudge in finding.nudges] == [instance_workflow_id(instance)]
    assert await _row(bench, instance) == ("terminating", "unreachable", 0)
    assert await look.look() == [], "once"


def _end(step: JobStep, outcome: JobOutcome, removed: JobOutcome) -> JobEnd:
    assert outcome.reason is not None
    return JobEnd(
        key=step.key,
        owner="run",
        claim_id=step.claim_id,
        instance_id=step.instance_id,
        status=JOB_REASONS[outcome.reason].status,
        reason=outcome.reason,
        message=outcome.message,
        at=datetime.now(UTC),
        quarantine=removed.unreachable,
        instance_gone=removed.instance_gone,
    )


async def _row(bench: Bench, instance: object) -> tuple[str, str, int]:
    query = text("""
        SELECT i.status, i.reason, (SELECT count(*) FROM holdings h WHERE h.instance_id = i.id) AS held
        FROM instances i WHERE i.id = :id
    """)
    async with bench.world.database.transaction() as tx:
        row = (await tx.execute(query, {"id": instance})).one()
    return row.status, row.reason, row.held
