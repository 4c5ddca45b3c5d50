"""Who may call the agents, and what they answer to calls that are wrong, early, late or repeated."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from perdure.agents import executors
from perdure.agents.execution import ExecutionError
from perdure.agents.instance import Instance
from perdure.agents.protocol import RunnerState, StopBody, TaskStatus, Terminate
from perdure.agents.shim.record import Fences
from perdure.model.errors import AgentRefused, AgentUnreachable
from tests.agents.processes import Host, job_of, new_task, raw, start, submit


async def test_only_who_has_the_token_and_means_this_instance_is_heard(here: Host) -> None:
    job = await start(here, "sleep 100")
    for socket in (None, job.info.runner_socket):
        async with raw(here, socket) as client:
            right = {
                "Authorization": f"Bearer {here.endpoint.token}",
                "X-Perdure-Instance": str(here.endpoint.instance_id),
            }
            assert (await client.get("/api/healthcheck", headers=right)).status_code == 200
            assert (await client.get("/api/healthcheck")).status_code == 401
            wrong = {**right, "Authorization": "Bearer another"}
            assert (await client.get("/api/healthcheck", headers=wrong)).status_code == 401
            other = {**right, "X-Perdure-Instance": str(uuid4())}
            assert (await client.get("/api/healthcheck", headers=other)).status_code == 421


async def test_sockets_and_state_are_the_owners_alone(here: Host) -> None:
    job = await start(here, "sleep 100")
    for path in (Path(here.endpoint.socket), Path(job.info.runner_socket)):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((here.folder / "tasks").stat().st_mode) == 0o700
    for name in ("config.json", "task.json", "job.json", "keeper.spec", "log"):
        assert stat.S_IMODE((here.task_folder(job.id) / name).stat().st_mode) & 0o077 == 0, name


async def test_health_says_who_answers(here: Host) -> None:
    health = await (await here.shim()).healthcheck()
    assert (health.service, health.instance_id) == ("perdure-shim", here.endpoint.instance_id)
    assert health.sandbox in ("bubblewrap", "none")


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"", {}, 400),
        (b"{", {}, 400),
        (b"[1]", {}, 400),
        (b'{"id": 1}', {}, 400),
        (b"{} {}", {}, 400),
        (b"{}", {"Content-Type": "text/plain"}, 415),
        (b" " * (1 << 20) + b"{}", {}, 413),
    ],
)
async def test_a_wrong_body_is_refused_in_plain_text(
    here: Host, content: bytes, headers: dict[str, str], status: int
) -> None:
    right = {"Authorization": f"Bearer {here.endpoint.token}", "X-Perdure-Instance": str(here.endpoint.instance_id)}
    async with raw(here) as client:
        answer = await client.post("/api/tasks", content=content, headers={**right, **headers})
    assert answer.status_code == status
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text.strip()


async def test_a_refused_body_is_not_told_again(here: Host) -> None:
    right = {"Authorization": f"Bearer {here.endpoint.token}", "X-Perdure-Instance": str(here.endpoint.instance_id)}
    task = {**new_task().model_dump(mode="json"), "registry_password": ["s3cret"], "ports": "s3cret"}
    async with raw(here) as client:
        answer = await client.post("/api/tasks", json=task, headers=right)
    assert answer.status_code == 400
    assert "registry_password: Input should be a valid string" in answer.text
    assert "s3cret" not in answer.text


async def test_unknown_fields_are_ignored(here: Host) -> None:
    task = new_task()
    right = {"Authorization": f"Bearer {here.endpoint.token}", "X-Perdure-Instance": str(here.endpoint.instance_id)}
    async with raw(here) as client:
        body = {**task.model_dump(mode="json"), "of_tomorrow": 1}
        assert (await client.post("/api/tasks", json=body, headers=right)).status_code == 200


async def test_every_call_may_be_repeated(here: Host) -> None:
    job = await start(here, "echo once; sleep 0.3")
    assert (await job.shim.submit_task(job.task)).id == job.id
    await job.runner.submit(job_of(job.task, "echo twice"))
    answers = await asyncio.gather(*(job.runner.run() for _ in range(5)))
    assert len({answer.working_dir for answer in answers}) == 1
    assert (await job.ended()).reason == "done_by_runner"
    assert await job.log() == b"once\n"
    for _ in range(2):
        await job.runner.submit(job_of(job.task, "echo thrice"))
        assert (await job.runner.run()) == answers[0]
        await job.runner.ack()
        assert (await job.runner.stop()).reason == "done_by_runner"
    for _ in range(2):
        assert (await job.shim.terminate(job.id)).status is TaskStatus.TERMINATED
    for _ in range(2):
        await job.shim.remove(job.id)


async def test_the_runner_refuses_what_comes_too_early(here: Host) -> None:
    shim, runner, info = await submit(here, new_task())
    with pytest.raises(AgentRefused, match="No job"):
        await runner.run()
    with pytest.raises(AgentRefused, match="No job"):
        await runner.upload_archive("0" * 64, _bytes(b""))
    with pytest.raises(AgentRefused, match="not ended"):
        await runner.ack()
    with pytest.raises(AgentRefused) as refused:
        await shim.remove(info.id)
    assert refused.value.status == 409
    with pytest.raises(AgentRefused) as refused:
        await runner.logs(1)
    assert refused.value.status == 416
    with pytest.raises(AgentRefused, match="SIGNONE"):
        await runner.stop(StopBody(signal="SIGNONE"))


async def test_an_archive_must_have_its_hash_and_be_there(here: Host) -> None:
    task = new_task()
    _, runner, _ = await submit(here, task)
    sha256 = hashlib.sha256(b"right").hexdigest()
    await runner.submit(job_of(task, "true", archives=[{"sha256": sha256}]))
    with pytest.raises(AgentRefused, match="not been uploaded"):
        await runner.run()
    with pytest.raises(AgentRefused, match="SHA-256"):
        await runner.upload_archive(sha256, _bytes(b"wrong"))
    with pytest.raises(AgentRefused, match="SHA-256"):
        await runner.upload_archive("not-a-hash", _bytes(b""))
    with pytest.raises(AgentRefused, match="not been uploaded"):
        await runner.run()


async def test_an_unknown_task_is_404_and_its_removal_success(here: Host) -> None:
    shim = await here.shim()
    for call in (shim.task(uuid4()), shim.terminate(uuid4())):
        with pytest.raises(AgentRefused) as refused:
            await call
        assert refused.value.status == 404
    await shim.remove(uuid4())


async def test_terminate_and_remove_at_once_from_many_callers(here: Host) -> None:
    job = await start(here, "trap '' TERM; sleep 100 & wait; sleep 100")

    async def end() -> None:
        await job.shim.terminate(job.id, Terminate(timeout=0.2, termination_reason="terminated_by_user"))
        await job.shim.remove(job.id)

    await asyncio.gather(*(end() for _ in range(6)), return_exceptions=False)
    assert (await job.shim.tasks()).tasks == []


async def test_terminate_from_every_state_before_running(here: Host) -> None:
    shim = await here.shim()
    for pause in (0, 0.005, 0.01, 0.02, 0.04):
        task = new_task()
        await shim.submit_task(task)
        await asyncio.sleep(pause)
        info = await shim.terminate(task.id, Terminate(termination_reason="terminated_by_user"))
        assert (info.status, info.termination_reason) == (TaskStatus.TERMINATED, "terminated_by_user")
        await shim.remove(task.id)


async def test_a_second_terminate_shortens_the_grace(here: Host) -> None:
    job = await start(here, "trap '' TERM; echo ready; while :; do sleep 0.1; done")
    await job.printed(b"ready\n")
    gentle = asyncio.create_task(job.shim.terminate(job.id, Terminate(timeout=600)))
    await asyncio.sleep(0.1)
    assert not gentle.done()
    await asyncio.wait_for(job.shim.terminate(job.id, Terminate(timeout=0)), 60)
    assert (await asyncio.wait_for(gentle, 60)).status is TaskStatus.TERMINATED
    assert await job.log() == b"ready\n", "the end of the log is still to be had"


async def test_a_status_change_ends_a_long_poll(here: Host) -> None:
    shim, runner, info = await submit(here, new_task())
    polls = [
        asyncio.create_task(shim.task(info.id, seen="running", wait=20)),
        asyncio.create_task(runner.state(seen="wait_submit", wait=20)),
    ]
    await asyncio.sleep(0.05)
    await runner.stop(StopBody(reason="terminated_by_user"))
    await shim.terminate(info.id)
    task, state = await asyncio.wait_for(asyncio.gather(*polls), 60)
    assert task.status is TaskStatus.TERMINATED  # type: ignore[union-attr]
    assert state.state is RunnerState.ENDED


async def test_a_higher_submission_ends_the_lower_and_a_lower_is_refused(here: Host) -> None:
    run = uuid4()
    first = await start(here, "trap '' TERM; while :; do sleep 0.1; done", new_task(run_id=run, submission=1))
    other = await start(here, "sleep 100", new_task(run_id=run, submission=1, slot="0-1"))
    second, _, _ = await submit(here, new_task(run_id=run, submission=2))
    info = await second.task(first.id)
    assert (info.status, info.termination_reason) == (TaskStatus.TERMINATED, "terminated_by_server")
    assert "Submission 2" in info.termination_message
    assert (await second.task(other.id)).status is TaskStatus.RUNNING
    for submission in (0, 1, 2):
        with pytest.raises(AgentRefused) as refused:
            await second.submit_task(new_task(run_id=run, submission=submission))
        assert refused.value.status == 409


async def test_a_removed_submission_never_comes_back(here: Host) -> None:
    job = await start(here, "true")
    await job.ended()
    await job.shim.terminate(job.id)
    await job.shim.remove(job.id)
    here.kill_shim()
    here.start_shim()
    with pytest.raises(AgentRefused, match="replaced or removed"):
        await (await here.shim()).submit_task(job.task)


async def test_a_task_removed_before_it_came_is_refused(here: Host) -> None:
    shim, task = await here.shim(), new_task()
    await shim.remove(task.id)
    here.kill_shim()
    here.start_shim()
    shim = await here.shim()
    with pytest.raises(AgentRefused) as refused:
        await shim.submit_task(task)
    assert refused.value.status == 409
    await shim.submit_task(new_task(run_id=task.run_id))


def test_tasks_removed_before_they_came_are_forgotten_late_and_in_number() -> None:
    fences, first = Fences(), new_task()
    fences = fences.without(first.id, now=0)
    assert not fences.passes(first)
    assert fences.without(uuid4(), now=Fences.LATE + 1).passes(first)
    for number in range(Fences.MOST):
        fences = fences.without(uuid4(), now=number / 1000)
    assert len(fences.removed) == Fences.MOST
    assert fences.passes(first)


async def test_no_answer_and_another_instance_are_told_apart(here: Host) -> None:
    nobody = await here.agents.shim(replace(here.endpoint, socket=str(here.base / "none.sock")))
    with pytest.raises(AgentUnreachable):
        await nobody.healthcheck()
    another = await here.agents.shim(replace(here.endpoint, token="old"))
    with pytest.raises(AgentRefused) as refused:
        await another.healthcheck()
    assert refused.value.status == 401


async def test_an_image_without_a_container_engine_is_refused_in_one_sentence_and_removed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setattr(os, "access", lambda *_: False)
    instance = Instance(instance_id=uuid4(), token="t", work_dir=tmp_path)
    task = new_task(image_name="ubuntu")
    half = executors.preparation(task, instance, tmp_path)
    with pytest.raises(ExecutionError, match="needs a container engine") as refused:
        await half.prepare(task, tmp_path, lambda progress: None)
    assert refused.value.reason == "creating_container_error"
    await half.remove(task, tmp_path)
    with pytest.raises(ExecutionError, match="needs a container engine"):
        executors.execution(task, tmp_path, instance)


async def _bytes(content: bytes):
    yield content
