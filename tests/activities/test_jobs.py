"""One job at its agents: brought up, watched, taken down, and what each step does when things go wrong."""

from __future__ import annotations

import asyncio
import hashlib
import io
import tarfile
from collections.abc import AsyncIterator

from nacl.public import PrivateKey

from activities.seal import public_key
from perdure.client.seal import seal
from perdure.model.messages import CodeRef, JobStep
from perdure.model.statuses import JobReason, JobStatus
from perdure.spec.effective import Sealed
from perdure.store import jobs
from tests.activities.bench import Bench
from tests.support.waiting import eventually

FOREVER = "while :; do sleep 0.1; done"


async def test_a_job_is_brought_up_watched_and_taken_down(bench: Bench) -> None:
    instance = await bench.instance()
    step = await bench.running(instance, "echo out; echo err >&2; exit 3")
    row = await bench.row(step)
    assert row.status is JobStatus.RUNNING
    outcome = await bench.watch(step)
    assert (outcome.reason, outcome.exit_status) == (JobReason.CONTAINER_EXITED_WITH_ERROR, 3)
    assert sorted((await bench.log(step)).split()) == [b"err", b"out"]
    assert (await bench.row(step)).log_complete
    assert not (await bench.remove(step)).unreachable
    assert await bench.tasks(instance) == []


async def test_every_step_may_be_repeated_and_the_job_runs_once(bench: Bench) -> None:
    step = await bench.job(await bench.instance(), "echo once")
    for bring_up in (bench.submit, bench.submit, bench.start, bench.submit, bench.start):
        assert (await bring_up(step)).reason is None
    for _ in range(2):
        assert (await bench.watch(step)).reason is JobReason.DONE_BY_RUNNER
    assert (await bench.start(step)).reason is None
    for _ in range(2):
        assert not (await bench.remove(step)).unreachable
    assert await bench.log(step) == b"once\n"


async def test_only_the_agent_is_told_what_was_sealed(bench: Bench) -> None:
    sealed = Sealed(sealed=seal(public_key(bench.world.private_key), "s3cret"))
    step = await bench.running(await bench.instance(), 'echo "got $TOKEN"', env={"TOKEN": sealed})
    assert "s3cret" not in (await bench.row(step)).effective.model_dump_json()
    assert (await bench.watch(step)).reason is JobReason.DONE_BY_RUNNER
    assert await bench.log(step) == b"got s3cret\n"


async def test_a_value_sealed_for_somebody_else_is_named_and_not_shown(bench: Bench) -> None:
    other = Sealed(sealed=seal(public_key(bytes(PrivateKey.generate())), "s3cret"))
    step = await bench.job(await bench.instance(), "true", env={"TOKEN": other})
    outcome = await bench.submit(step)
    assert outcome.reason is JobReason.TERMINATED_BY_SERVER, "another try would end the same way"
    assert "TOKEN" in outcome.message
    assert "s3cret" not in outcome.message


async def test_a_job_that_its_host_cannot_start_is_never_running(bench: Bench) -> None:
    step = await bench.job(await bench.instance(), "true", user="nosuchuser")
    assert (await bench.submit(step)).reason is None
    outcome = await bench.start(step)
    assert outcome.reason is JobReason.EXECUTOR_ERROR
    assert "no user nosuchuser" in outcome.message
    async with bench.world.database.transaction() as tx:
        assert (await jobs.load(tx, step.key.job_id)).status is JobStatus.PROVISIONING
    assert not (await bench.remove(step)).unreachable


async def test_code_reaches_the_job(bench: Bench) -> None:
    packed = _archive({"train.txt": b"weights"})
    sha256 = hashlib.sha256(packed).hexdigest()
    await bench.world.blobs.write_code(sha256, _pieces(packed))
    code = (CodeRef(sha256=sha256, size=len(packed)),)
    step = await bench.running(await bench.instance(), "cat train.txt", code=code)
    assert (await bench.watch(step)).reason is JobReason.DONE_BY_RUNNER
    assert await bench.log(step) == b"weights"


async def test_code_that_is_not_there_is_a_clear_no(bench: Bench) -> None:
    step = await bench.job(await bench.instance(), "true", code=(CodeRef(sha256="0" * 64, size=1),))
    assert (await bench.submit(step)).reason is None
    outcome = await bench.start(step)
    assert outcome.reason is JobReason.EXECUTOR_ERROR
    assert "000000000000" in outcome.message


async def test_a_host_that_never_answers_is_given_up_after_its_limit(bench: Bench) -> None:
    instance = await bench.instance()
    bench.kill_shim(instance)
    step = await bench.job(instance, "true")
    step = step.but(timing=step.timing.but(provisioning=0.5))
    outcome = await bench.submit(step)
    assert outcome.reason is JobReason.WAITING_RUNNER_LIMIT_EXCEEDED
    assert outcome.unreachable


async def test_a_job_that_its_host_forgot_is_never_started_again(bench: Bench) -> None:
    instance = await bench.instance()
    step = await bench.running(instance, f"echo once; {FOREVER}")
    await eventually(lambda: bench.printed(step, b"once"))
    await bench.lose_state(instance)
    for answer in (await bench.watch(step), await bench.start(step), await bench.submit(step)):
        assert answer.reason is JobReason.EXECUTOR_ERROR
        assert "lost its state" in answer.message
        assert not answer.unreachable
    assert await bench.tasks(instance) == []


async def test_a_watch_outlives_its_runner(bench: Bench) -> None:
    instance = await bench.instance()
    step = await bench.running(instance, "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.1; done")
    watching = asyncio.create_task(bench.watch(step))
    await eventually(lambda: bench.printed(step, b"2"))
    bench.kill_runners()
    outcome = await watching
    assert (outcome.reason, outcome.exit_status) == (JobReason.DONE_BY_RUNNER, 0)
    assert await bench.log(step) == b"".join(b"%d\n" % number for number in range(1, 9))


async def test_a_host_that_comes_back_in_time_has_lost_nothing(bench: Bench) -> None:
    instance = await bench.instance()
    step = await bench.running(instance, "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.1; done")
    watching = asyncio.create_task(bench.watch(step))
    await eventually(lambda: bench.printed(step, b"2"))
    bench.kill_shim(instance)
    bench.kill_runners()
    await asyncio.sleep(0.3)
    assert not watching.done()
    await bench.revive(instance)
    outcome = await watching
    assert (outcome.reason, outcome.exit_status) == (JobReason.DONE_BY_RUNNER, 0)
    assert await bench.log(step) == b"".join(b"%d\n" % number for number in range(1, 9))


async def test_a_host_that_stays_away_is_lost_and_its_log_says_so(bench: Bench) -> None:
    instance = await bench.instance()
    step = await bench.running(instance, f"echo begun; {FOREVER}")
    watching = asyncio.create_task(bench.watch(step))
    await eventually(lambda: _stored(bench, step, b"begun"))
    watching.cancel()
    await asyncio.wait([watching])
    bench.kill_shim(instance)
    bench.kill_runners()
    outcome = await bench.watch(step, step.timing.contact_lost - 0.3, 0)
    assert outcome.reason is JobReason.INSTANCE_UNREACHABLE
    assert outcome.unreachable
    step = step.but(timing=step.timing.but(abort_bound=0.3))
    assert (await bench.remove(step)).unreachable
    assert (await bench.row(step)).log_complete
    lines = (await bench.log(step)).splitlines()
    assert lines[0] == b"begun"
    assert lines[-1].startswith(b"[perdure] the rest of this log could not be saved")


async def test_silence_adds_up_over_the_attempts_of_a_watch(bench: Bench) -> None:
    instance = await bench.instance()
    step = await bench.running(instance, FOREVER)
    bench.kill_shim(instance)
    bench.kill_runners()
    patient = step.but(timing=step.timing.but(contact_lost=60.0))
    outcome = await asyncio.wait_for(bench.watch(patient, 59.9, 0), 50)
    assert outcome.reason is JobReason.INSTANCE_UNREACHABLE


async def test_what_nobody_watched_is_drained_before_the_task_goes(bench: Bench) -> None:
    instance = await bench.instance()
    step = await bench.running(instance, f"seq 1 300000; {FOREVER}")
    await eventually(lambda: bench.printed(step, b"\n300000\n"))
    await bench.stop(step, grace=60)
    assert not (await bench.remove(step)).unreachable
    assert await bench.log(step) == b"".join(b"%d\n" % number for number in range(1, 300001))
    assert (await bench.row(step)).log_complete
    assert await bench.tasks(instance) == []


async def test_a_running_job_is_killed_with_its_task(bench: Bench) -> None:
    instance = await bench.instance()
    step = await bench.running(instance, f"trap '' TERM; echo stubborn; {FOREVER}")
    await eventually(lambda: bench.printed(step, b"stubborn"))
    assert not (await bench.remove(step)).unreachable
    assert await bench.tasks(instance) == []
    assert (await bench.row(step)).log_complete


async def test_a_task_that_reaches_its_host_after_its_removal_is_refused(bench: Bench) -> None:
    step = await bench.job(instance := await bench.instance(), "true")
    assert not (await bench.remove(step)).unreachable
    outcome = await bench.submit(step)
    assert outcome.reason is JobReason.EXECUTOR_ERROR
    assert await bench.tasks(instance) == []


async def test_removing_a_job_that_never_ran_leaves_an_empty_complete_log(bench: Bench) -> None:
    step = await bench.job(await bench.instance(), "true")
    assert not (await bench.remove(step)).unreachable
    row = await bench.row(step)
    assert (row.log_bytes, row.log_complete) == (0, True)


async def test_a_stop_ends_the_job_for_the_reason_given(bench: Bench) -> None:
    step = await bench.running(await bench.instance(), f"trap 'exit 0' TERM; echo ready; {FOREVER}")
    await eventually(lambda: bench.printed(step, b"ready"))
    outcome = await bench.stop(step, grace=60)
    assert (outcome.reason, outcome.exit_status) == (JobReason.TERMINATED_BY_USER, 0)
    assert (await bench.watch(step)).reason is JobReason.TERMINATED_BY_USER


async def test_a_job_that_was_done_before_the_stop_stays_done(bench: Bench) -> None:
    step = await bench.running(await bench.instance(), "true")
    assert (await bench.watch(step)).reason is JobReason.DONE_BY_RUNNER
    outcome = await bench.stop(step)
    assert (outcome.reason, outcome.exit_status) == (JobReason.DONE_BY_RUNNER, 0)


async def test_a_stop_before_the_start_keeps_the_job_from_running(bench: Bench) -> None:
    step = await bench.job(await bench.instance(), "echo ran")
    assert (await bench.submit(step)).reason is None
    assert (await bench.stop(step)).reason is JobReason.TERMINATED_BY_USER
    assert (await bench.start(step)).reason is JobReason.TERMINATED_BY_USER
    assert (await bench.watch(step)).reason is JobReason.TERMINATED_BY_USER
    assert await bench.log(step) == b""


def _archive(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def _stored(bench: Bench, step: JobStep, word: bytes) -> bool:
    return word in await bench.log(step)
