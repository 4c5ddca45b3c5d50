"""Images: fetched with progress, and a registry's refusals in words."""

from __future__ import annotations

import asyncio
import os

import pytest

from perdure.agents.docker import DockerPreparation
from perdure.agents.docker_pull import in_words
from perdure.agents.execution import ExecutionError
from tests.agents.docker_tasks import IMAGE, Tasks
from tests.agents.processes import eventually
from tests.support.engine import ContainerEngine
from tests.support.registry import Registry, free_port

MB = 1 << 20


@pytest.fixture(scope="module")
def stored(engine: ContainerEngine, registry: Registry) -> str:
    """An image of more than 48 MB that only the registry has."""
    name = engine.make_image(f"{registry.host}/team/big:1", files={"weights": os.urandom(48 * MB)})
    engine.push(name, registry.auth)
    return name


def login(registry: Registry) -> dict[str, str]:
    return {"registry_username": registry.username, "registry_password": registry.password}


async def test_private_image_is_pulled_and_its_progress_told_in_bytes(
    tasks: Tasks, registry: Registry, stored: str
) -> None:
    task = tasks.make("wc", "-c", "/weights", image=stored, **login(registry))
    assert (await task.run()).exit_status == 0
    assert task.log == b"50331648 /weights\n"
    downloaded = [step.downloaded_bytes for step in task.progress]
    assert downloaded == sorted(downloaded)
    assert any(0 < step.downloaded_bytes < step.total_bytes for step in task.progress)
    last = task.progress[-1]
    assert last.is_total_bytes_final
    assert last.downloaded_bytes == last.extracted_bytes == last.total_bytes > 48 * MB
    tasks.engine.forget(stored)


async def test_wrong_password_is_told(tasks: Tasks, registry: Registry, stored: str) -> None:
    task = tasks.make(image=stored, registry_username=registry.username, registry_password="wrong")
    with pytest.raises(ExecutionError) as error:
        await task.prepare()
    assert error.value.reason == "creating_container_error"
    assert error.value.message == (f"registry {registry.host} refused the username or password for {stored}")


async def test_missing_login_is_told(tasks: Tasks, registry: Registry, stored: str) -> None:
    with pytest.raises(ExecutionError, match="wants a username and password"):
        await tasks.make(image=stored).prepare()


@pytest.mark.parametrize("name", ["team/none:1", "team/big:2"])
async def test_missing_image_is_told(tasks: Tasks, registry: Registry, stored: str, name: str) -> None:
    task = tasks.make(image=f"{registry.host}/{name}", **login(registry))
    with pytest.raises(ExecutionError) as error:
        await task.prepare()
    assert error.value.message == f"image {registry.host}/{name} does not exist in registry {registry.host}"


async def test_registry_that_does_not_answer_is_told(tasks: Tasks) -> None:
    host = f"127.0.0.1:{free_port()}"
    with pytest.raises(ExecutionError, match=f"registry {host} cannot be reached"):
        await tasks.make(image=f"{host}/x:1").prepare()


async def test_name_that_is_none_is_told(tasks: Tasks) -> None:
    with pytest.raises(ExecutionError, match="is not an image name"):
        await tasks.make(image="Not/An:Image:1").prepare()


async def test_engine_that_is_away_is_told(tasks: Tasks) -> None:
    task = tasks.make()
    nowhere = DockerPreparation(tasks.instance, tasks.base, "unix:///nowhere/docker.sock")
    with pytest.raises(ExecutionError, match=r"container engine at unix:///nowhere/docker\.sock does not answer"):
        await nowhere.prepare(task.config, task.folder, task.progress.append)


async def test_image_with_a_fixed_tag_is_not_asked_for_again(tasks: Tasks) -> None:
    task = tasks.make(image=IMAGE)
    await task.prepare()
    assert task.progress == []


async def test_moving_tag_is_pulled_anew(tasks: Tasks, registry: Registry) -> None:
    name = f"{registry.host}/team/moving"
    for content in (b"old", b"new"):
        tasks.engine.make_image(f"{name}:latest", files={"version": content})
        tasks.engine.push(f"{name}:latest", registry.auth)
        task = tasks.make("cat", "/version", image=name, **login(registry))
        await task.run()
        assert task.log == content
        await task.preparation.remove(task.config, task.folder)
    tasks.engine.forget(f"{name}:latest")


async def test_pull_ends_with_its_time_limit(tasks: Tasks, registry: Registry, stored: str) -> None:
    task = tasks.make(image=stored, pull_timeout=0.05, **login(registry))
    with pytest.raises(ExecutionError, match=r"took longer than 0\.05 s"):
        await task.prepare()


async def test_cancelled_pull_can_be_taken_up_again(tasks: Tasks, registry: Registry, stored: str) -> None:
    task = tasks.make("true", image=stored, **login(registry))
    pulling = asyncio.create_task(task.prepare())
    await eventually(lambda: task.progress)
    pulling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await pulling
    assert (await task.run()).exit_status == 0
    tasks.engine.forget(stored)


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("toomanyrequests: You have reached your pull rate limit", "limits how often"),
        ("no matching manifest for linux/arm64/v8 in the manifest list entries", "architecture"),
        ("write /x: no space left on device", "the disk is full"),
        ("Get https://a.b/v2/: dial tcp: lookup a.b: no such host", "cannot be reached"),
        ("pull access denied for x, repository does not exist or may require 'docker login'", "does not exist"),
        ("something new", "something new"),
    ],
)
def test_refusals_are_put_in_words(message: str, words: str) -> None:
    assert words in in_words("a.b/c:1", message, with_login=False)
