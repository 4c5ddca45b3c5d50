"""Tasks with an image, through the real program, on a real stack, a real container engine and a real registry."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_main_job import history, one_run, settled, write
from tests.support.engine import ContainerEngine, container_engine
from tests.support.registry import Gate, Registry, free_port
from tests.support.registry import registry as running_registry
from tests.support.stack import Stack, fresh

IMAGE = "perdure.test/busybox:1"
"""Nothing answers at that registry: it is only ever found in the engine."""

PRIVATE = "team/private:1"
LAYER = 16 << 20
"""Bytes of the private image's layer."""

LIMIT = 32 << 20
"""Bytes of memory for a container that wants all."""

TIMING = {"retry_backoff": [0.3], "stop_grace": 30.0}
LOGIN = {"username": "ada", "password": "${{ env.REGISTRY_PASSWORD }}"}
COUNT = "i=0; while [ $i -lt {n} ]; do i=$((i+1)); echo line $i; usleep 50000; done"


@pytest.fixture(scope="module")
def engine() -> Iterator[ContainerEngine]:
    with container_engine() as one:
        one.make_image(IMAGE)
        yield one


@pytest.fixture(scope="module")
def registry(engine: ContainerEngine) -> Iterator[Registry]:
    """With one image, which the engine has not."""
    with running_registry() as one:
        name = f"{one.host}/{PRIVATE}"
        engine.push(engine.make_image(name, files={"layer": os.urandom(LAYER)}), one.auth)
        yield one


@pytest.fixture(scope="module")
def stack(engine: ContainerEngine) -> Iterator[Stack]:
    """One for all of these tests; nothing of it may be left at the end, in the engine either."""
    environ = {"PERDURE_TIMING": json.dumps(TIMING), "DOCKER_HOST": engine.address}
    with fresh(environ=environ) as one:
        one.up()
        yield one
    assert engine.containers() == []
    assert engine.volumes() == []


def failed(stack: Stack, path: str, *options: str) -> tuple[str, dict[str, Any]]:
    """What is said of a run that fails, and its only job."""
    done = stack.run("apply", "-f", path, "-y", *options)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    run = one_run(stack, Path(path).stem)
    assert run["status"] == "failed"
    return " ".join(done.stderr.split()), run["jobs"][0]


def submit(stack: Stack, path: str, *options: str) -> None:
    stack.ok("apply", "-f", path, "-y", "-d", *options)


def wait_for(stack: Stack, name: str, status: str) -> dict[str, Any]:
    stack.until(lambda: one_run(stack, name)["status"] == status, f"{name} to be {status}")
    return one_run(stack, name)


def test_an_image_task_runs_to_its_last_line_with_what_was_sealed_for_it(stack: Stack, engine: ContainerEngine):
    secret = "s3cret-never-in-history"
    path = write(stack, "boxed", "grep bob /etc/passwd", "echo $TOKEN | rev", image=IMAGE)
    done = stack.run("apply", "-f", path, "-y", "-e", f"TOKEN={secret}")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"bob:x:1234:1234:Bob:/home/bob:/bin/sh\n{secret[::-1]}\n"
    job_id = one_run(stack, "boxed")["jobs"][0]["job_id"]
    for found in (
        stack.ok("run", "get", "boxed", "--json"),
        history(stack, "run/main/boxed"),
        history(stack, f"job/{one_run(stack, 'boxed')['run_id']}/0-0/0"),
    ):
        assert "boxed" in found or job_id in found
        assert secret not in found
    assert engine.containers() == []
    settled(stack)


def test_two_nodes_each_have_a_container(stack: Stack):
    path = write(stack, "pair", "echo node $PERDURE_NODE_RANK of $PERDURE_NODES_NUM", image=IMAGE, nodes=2)
    done = stack.run("apply", "-f", path, "-y")
    assert done.returncode == 0, done.stderr
    assert stack.ok("logs", "pair", "--job", "1") == "node 1 of 2\n"


def test_a_wrong_password_an_image_that_is_not_there_and_an_end_by_signal_are_told(
    stack: Stack, registry: Registry
):
    image = f"{registry.host}/{PRIVATE}"
    path = write(stack, "locked", "true", image=image, registry_auth=LOGIN)
    said, job = failed(stack, path, "-e", "REGISTRY_PASSWORD=wr0ng-pw")
    assert f"registry {registry.host} refused the username or password for {image}" in said
    assert job["reason"] == "creating_container_error"
    assert "wr0ng-pw" not in said + stack.ok("run", "get", "locked", "--json") + history(stack, "run/main/locked")

    missing = f"{registry.host}/team/none:1"
    path = write(stack, "missing", "true", image=missing, registry_auth=LOGIN)
    said, job = failed(stack, path, "-e", f"REGISTRY_PASSWORD={registry.password}")
    assert f"image {missing} does not exist in registry {registry.host}" in said
    assert job["reason"] == "creating_container_error"

    said, job = failed(stack, write(stack, "killed", "kill -9 $$$$", image=IMAGE))
    assert (job["reason"], job["exit_status"]) == ("container_exited_with_error", 137)
    assert "killed by SIGKILL" in said
    settled(stack)


def test_out_of_memory_is_told(stack: Stack, engine: ContainerEngine):
    (shared := stack.home.parent / "shared").mkdir()
    wait = "echo ready; until [ -e /shared/go ]; do usleep 50000; done"
    submit(stack, write(stack, "greedy", wait, "tail /dev/zero", image=IMAGE, volumes=[f"{shared}:/shared"]))
    stack.until(lambda: stack.ok("logs", "greedy") == "ready\n", "the job")
    (container,) = engine.containers()
    limits = {"Memory": LIMIT, "MemorySwap": LIMIT}
    engine.http.post(f"/containers/{container['Id']}/update", json=limits).raise_for_status()
    (shared / "go").touch()
    (job,) = wait_for(stack, "greedy", "failed")["jobs"]
    assert (job["reason"], job["exit_status"]) == ("container_exited_with_error", 137)
    assert job["message"].startswith("out of memory")


def test_ports_of_a_container_are_told(stack: Stack):
    port = free_port()
    submit(stack, write(stack, "web", f"nc -l -p {port}", image=IMAGE, ports=[str(port)]))
    (job,) = wait_for(stack, "web", "running")["jobs"]
    assert job["ports"] == [[port, port]]
    stack.ok("stop", "web", "-x", "-y")


def test_stop_lets_a_container_save_and_abort_does_not(stack: Stack, engine: ContainerEngine):
    script = "trap 'echo saving; exit 0' TERM; echo ready; while true; do usleep 50000; done"
    for name, options, saved in (("gentle", [], True), ("harsh", ["--abort"], False)):
        submit(stack, write(stack, name, script, image=IMAGE))
        stack.until(lambda name=name: stack.ok("logs", name) == "ready\n", "the job")
        stack.ok("stop", name, "-y", *options)
        assert one_run(stack, name)["status"] == "terminated"
        assert ("saving" in stack.ok("logs", name)) is saved
    assert engine.containers() == []


def test_a_pull_shows_its_progress_and_survives_the_worker(
    stack: Stack, registry: Registry, engine: ContainerEngine
):
    with Gate(registry, LAYER // 2) as gate:
        image = f"{gate.registry.host}/{PRIVATE}"
        stack.ok("secret", "set", "registry-password", registry.password)
        login = {"username": "ada", "password": "${{ secrets.registry-password }}"}
        submit(stack, write(stack, "pulled", "wc -c < /layer", image=image, registry_auth=login))

        def pulled() -> bool:
            (run,) = [run for run in json.loads(stack.ok("ps", "--json"))["runs"] if run["name"] == "pulled"]
            job = run["jobs"][0]
            return job["status"] == "pulling" and job["pull"] and 0 < job["pull"][0] < job["pull"][1]

        stack.until(pulled, "some of the image")
        stack.wait_until_up_again("worker", stack.kill("worker"))
        gate.open()
        run = wait_for(stack, "pulled", "done")
    assert len(run["jobs"]) == 1, "not pulled or run again"
    assert stack.ok("logs", "pulled") == f"{LAYER}\n"
    engine.forget(image)
    settled(stack)


def test_a_runner_killed_while_its_container_runs_loses_no_line(stack: Stack):
    submit(stack, write(stack, "counted", COUNT.format(n=60), image=IMAGE))
    stack.until(lambda: stack.ok("logs", "counted").count("\n") > 5, "some lines")
    (record,) = (stack.home / "instances").resolve().glob("*/tasks/*/runner.json")
    os.kill(json.loads(record.read_text())["pid"], signal.SIGKILL)
    run = wait_for(stack, "counted", "done")
    assert len(run["jobs"]) == 1
    assert stack.ok("logs", "counted") == "".join(f"line {i}\n" for i in range(1, 61))


def test_an_image_without_an_engine_is_told_in_a_sentence():
    with fresh(environ={"PERDURE_TIMING": json.dumps(TIMING), "DOCKER_HOST": "unix:///nowhere.sock"}) as bare:
        bare.up()
        done = bare.run("apply", "-f", write(bare, "boxed", "true", image=IMAGE), "-y")
        assert done.returncode == 1
        assert "container engine" in done.stderr
        assert json.loads(bare.ok("run", "get", "boxed", "--json"))["status"] == "failed"
        settled(bare)
