"""Bridge mode: a container of its own network, its ports on 127.0.0.1 of the host alone."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

from perdure.agents.execution import ExecutionError, Exit
from tests.agents.docker_tasks import Task, Tasks, tasks_on
from tests.agents.processes import eventually
from tests.support.engine import ContainerEngine


@pytest.fixture
async def apart(bridged: ContainerEngine) -> AsyncIterator[Tasks]:
    async with tasks_on(bridged) as some:
        yield some


def fetch(task: Task, address: str) -> bytes | None:
    """What an HTTP server says, asked from the engine's network; None if nobody answers."""
    script = f"import urllib.request as r; print(r.urlopen('http://{address}/', timeout=3).read().decode(), end='')"
    command = [sys.executable, "-c", script]
    got = subprocess.run(task.engine.inside(command), capture_output=True)
    return got.stdout if got.returncode == 0 else None


def server(tasks: Tasks, text: str, ports: list[int]) -> Task:
    return tasks.shell(
        f"mkdir /w; echo {text} > /w/index.html; httpd -h /w -p {ports[0]}; exec sleep 60",
        network_mode="bridge",
        ports=ports,
    )


async def test_two_jobs_serve_the_same_port_side_by_side(apart: Tasks) -> None:
    jobs = [server(apart, "one", [8080]), server(apart, "two", [8080, 9090])]
    chosen = [await job.prepare() for job in jobs]
    hosts = [port.host for ports in chosen for port in ports]
    assert [[port.container for port in ports] for ports in chosen] == [[8080], [8080, 9090]]
    assert len(set(hosts)) == 3
    for job, ports, text in zip(jobs, chosen, [b"one\n", b"two\n"], strict=True):
        await job.execution.start(job.job)
        assert await eventually(lambda job=job, ports=ports: fetch(job, f"127.0.0.1:{ports[0].host}")) == text
        assert fetch(job, f"172.31.77.1:{ports[0].host}") is None
        await job.execution.kill()


async def test_prepared_again_the_ports_are_the_same(apart: Tasks) -> None:
    job = server(apart, "x", [80, 81])
    assert await job.prepare() == await job.prepare()


async def test_port_taken_meanwhile_is_told(apart: Tasks) -> None:
    first = server(apart, "x", [80])
    ports = await first.start()
    assert ports
    second = server(apart, "y", [80])
    await second.prepare()
    (second.folder / "ports.json").write_text((first.folder / "ports.json").read_text())
    with pytest.raises(ExecutionError) as error:
        await second.execution.start(second.job)
    assert error.value.reason == "ports_binding_failed"
    await first.execution.kill()


async def test_in_host_mode_the_network_is_the_hosts(tasks: Tasks) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        task = tasks.shell(f"nc -w 1 127.0.0.1 {port} </dev/null", ports=[8080])
        assert await task.prepare() == []
        await task.execution.start(task.job)
        listener.settimeout(10)
        connection, _ = listener.accept()
        connection.close()
        assert await task.execution.wait() == Exit(0)
