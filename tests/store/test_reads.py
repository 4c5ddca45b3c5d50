from __future__ import annotations

from uuid import uuid4

from perdure.model.api import RunQuery
from perdure.model.ids import code_key, log_key
from perdure.model.messages import CodeRef, JobRecord, RunRecord
from perdure.model.statuses import JobReason, JobStatus, RunReason, RunStatus
from perdure.store import jobs, reads, retention, runs
from perdure.store.database import Database
from tests.support.inventory import Inventory, now


async def _list(db: Database, **query: object) -> list[str]:
    async with db.transaction() as tx:
        return [
            row.name for row in await reads.list_runs(tx, RunQuery.model_validate({"project": "main", **query}))
        ]


async def _finish(inventory: Inventory, run_id: object, **changes: object) -> None:
    record = {
        "run_id": run_id,
        "status": RunStatus.DONE,
        "reason": RunReason.ALL_JOBS_DONE,
        "at": now(),
        "final": True,
    }
    async with inventory.db.transaction() as tx:
        await runs.record(tx, RunRecord.model_validate({**record, **changes}))


async def test_list_shows_what_lives_and_all_shows_the_rest(inventory: Inventory):
    first, _ = await inventory.run("first"), await inventory.run("second")
    await _finish(inventory, first)
    assert await _list(inventory.db) == ["second"]
    assert await _list(inventory.db, all=True) == ["second", "first"]
    assert await _list(inventory.db, name="first") == ["first"]
    assert await _list(inventory.db, project="other") == []


async def test_name_used_again_shows_the_living_run(inventory: Inventory):
    old = await inventory.run("x")
    await _finish(inventory, old)
    new = await inventory.run("x")
    async with inventory.db.transaction() as tx:
        rows = await reads.list_runs(tx, RunQuery(project="main", name="x", limit=1, all=True))
    assert [row.run_id for row in rows] == [new]


async def test_leftover_of_a_name_is_superseded_not_in_the_way(inventory: Inventory):
    old, new = await inventory.run("x"), await inventory.run("x")
    (row,) = await inventory.rows("SELECT superseded_by FROM runs WHERE id = :id", id=old)
    assert row.superseded_by == new
    assert await _list(inventory.db) == ["x"]


async def test_ended_run_never_changes_again(inventory: Inventory):
    run_id = await inventory.run("x")
    await _finish(inventory, run_id)
    await _finish(inventory, run_id, status=RunStatus.FAILED, reason=RunReason.JOB_FAILED)
    await _finish(inventory, run_id, status=RunStatus.RUNNING, reason=None, final=False)
    (row,) = await inventory.rows("SELECT status, reason FROM runs WHERE id = :id", id=run_id)
    assert (row.status, row.reason) == ("done", "all_jobs_done")


async def test_job_of_a_run_is_shown_with_its_machine_and_latest_submission(inventory: Inventory):
    await inventory.fleet()
    request, answer = await inventory.claim()
    instance = answer.placements[0].instance_id
    await inventory.ready(instance)
    await inventory.start(request, instance)
    await inventory.end(request, instance, status=JobStatus.FAILED, reason=JobReason.EXECUTOR_ERROR)
    retried = request.but(submission=1, claim_id=uuid4())
    await inventory.again(retried)
    await inventory.start(retried, instance)
    async with inventory.db.transaction() as tx:
        (listed,) = await reads.list_runs(tx, RunQuery(project="main"))
        (asked,) = await reads.list_runs(tx, RunQuery(project="main", run_id=request.run_id))
    assert [(job.submission, job.status) for job in listed.jobs] == [(1, "running")]
    assert [(job.submission, job.status) for job in asked.jobs] == [(0, "failed"), (1, "running")]
    assert listed.jobs[0].instance == "local-0" and listed.jobs[0].address == "127.0.0.1"
    assert asked.configuration is not None and listed.configuration is None


async def test_fleets_are_listed_with_their_instances(inventory: Inventory):
    await inventory.fleet()
    await inventory.claim(nodes=2)
    async with inventory.db.transaction() as tx:
        (fleet,) = await reads.list_fleets(tx, "main")
    assert (fleet.name, fleet.nodes, fleet.placement) == ("local", "0..4", "cluster")
    assert [(one.name, one.status, one.busy_blocks) for one in fleet.instances] == [
        ("local-0", "pending", 1),
        ("local-1", "pending", 1),
    ]


async def test_log_offset_moves_only_from_where_the_writer_believes_it_is(inventory: Inventory):
    await inventory.fleet()
    request, answer = await inventory.claim()
    key = await inventory.start(request, answer.placements[0].instance_id)
    async with inventory.db.transaction() as tx:
        assert await jobs.commit_log(tx, key.job_id, 0, 10, False) == 10
        assert await jobs.commit_log(tx, key.job_id, 0, 7, False) == 10
        assert await jobs.commit_log(tx, key.job_id, 10, 10, True) == 10
        context = await jobs.load(tx, key.job_id)
    assert (context.log_bytes, context.log_complete) == (10, True)
    assert (context.blocks, context.total_blocks) == (1, 1)


async def test_job_status_is_never_taken_back(inventory: Inventory):
    await inventory.fleet()
    request, answer = await inventory.claim()
    instance = answer.placements[0].instance_id
    key = await inventory.start(request, instance)
    late = JobRecord(
        key=key, claim_id=request.claim_id, instance_id=instance, status=JobStatus.PROVISIONING, at=now()
    )
    async with inventory.db.transaction() as tx:
        await jobs.record(tx, late)
        assert (await jobs.load(tx, key.job_id)).status is JobStatus.RUNNING
    await inventory.end(request, instance)
    async with inventory.db.transaction() as tx:
        await jobs.record(tx, late.but(status=JobStatus.TERMINATING))
        assert not await jobs.set_status(tx, key.job_id, JobStatus.RUNNING, (JobStatus.PULLING,))
        assert (await jobs.load(tx, key.job_id)).status is JobStatus.DONE


async def test_restarted_worker_finds_the_watches_of_its_predecessor_once(inventory: Inventory):
    await inventory.fleet()
    request, answer = await inventory.claim()
    key = await inventory.start(request, answer.placements[0].instance_id)
    old, new = uuid4(), uuid4()
    async with inventory.db.transaction() as tx:
        await jobs.put_watch(tx, key.job_id, "worker", old, b"token")
        assert await jobs.stale_watches(tx, "worker", old) == []
        assert await jobs.stale_watches(tx, "other", new) == []
        assert await jobs.stale_watches(tx, "worker", new) == [b"token"]
        assert await jobs.stale_watches(tx, "worker", new) == []


async def test_old_runs_are_forgotten_with_their_logs_and_code_and_young_ones_kept(inventory: Inventory):
    await inventory.fleet()
    code = CodeRef(sha256="a" * 64, size=1)
    async with inventory.db.transaction() as tx:
        await runs.use_archives(tx, (code,))
    request, answer = await inventory.claim()
    instance = answer.placements[0].instance_id
    await inventory.ready(instance)
    key = await inventory.start(request, instance)
    living = await inventory.run("living")
    await inventory.change("UPDATE archives SET used_at = now() - interval '31 days'")
    async with inventory.db.transaction() as tx:
        assert await retention.forget(tx, 30) == [code_key(code.sha256)]

    await inventory.end(request, instance)
    await _finish(inventory, request.run_id)
    async with inventory.db.transaction() as tx:
        assert await retention.forget(tx, 30) == []
    await inventory.change("UPDATE runs SET ended_at = now() - interval '31 days' WHERE ended_at IS NOT NULL")
    async with inventory.db.transaction() as tx:
        assert await retention.forget(tx, 30) == [log_key(key.job_id)]
    assert [row.id for row in await inventory.rows("SELECT id FROM runs")] == [living]
    assert not await inventory.rows("SELECT * FROM claims")


async def test_a_run_says_how_many_jobs_it_will_have_before_they_begin(inventory: Inventory):
    run_id = await inventory.run(nodes=3)
    async with inventory.db.transaction() as tx:
        (run,) = await reads.list_runs(tx, RunQuery(project="main", run_id=run_id))
    assert (run.jobs, run.nodes, run.replicas) == ((), 3, 1)
    assert run.has(0, 2) and not run.has(0, 3) and not run.has(1, 0)
