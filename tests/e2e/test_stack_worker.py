"""The worker as production runs it: against a Temporal and a Postgres that somebody else keeps."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from perdure.model.names import SEARCH_ATTRIBUTES
from perdure.stack.part import CANNOT_START
from perdure.stack.temporal import find_program
from tests.support.stack import Stack, fresh
from tests.support.waiting import until


@pytest.fixture(scope="module")
def up() -> Iterator[Stack]:
    with fresh() as stack:
        stack.up()
        yield stack


class Worker:
    """A worker process with its own home, log and settings."""

    def __init__(self, folder: Path, **environ: str):
        self.log = folder / "worker.log"
        self.ready = folder / "ready"
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(("PERDURE_", "TEMPORAL_"))}
        settings = {"PERDURE_HOME": str(folder / "home"), "PERDURE_READY_FILE": str(self.ready)}
        (folder / "home").mkdir()
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "perdure.stack.worker"],
                env=inherited | settings | environ,
                stdout=log,
                stderr=log,
                cwd="/",
            )

    def said(self, text: str) -> bool:
        return text in self.log.read_text()

    def stop(self) -> None:
        """SIGTERM, and wait until it has ended."""
        self.process.terminate()
        self.process.wait(120)


@pytest.fixture
def workers() -> Iterator[list[Worker]]:
    started: list[Worker] = []
    yield started
    for worker in started:
        if worker.process.poll() is None:
            worker.process.kill()
            worker.process.wait()


def test_a_second_worker_joins_and_leaves_on_sigterm(up: Stack, workers: list[Worker], tmp_path: Path) -> None:
    worker = Worker(
        tmp_path,
        PERDURE_DATABASE_URL=up.described["database_url"],
        PERDURE_BLOBS=str(up.home / "blobs"),
        PERDURE_KEY_FILE=str(up.home / "key"),
        TEMPORAL_ADDRESS=up.described["temporal"],
        TEMPORAL_NAMESPACE="default",
    )
    workers.append(worker)
    up.until(worker.ready.exists, "the worker to be ready")
    assert worker.ready.read_text() == str(worker.process.pid)
    worker.stop()
    assert worker.process.returncode == 0


def test_a_namespace_gets_the_search_attributes_it_lacks(up: Stack, workers: list[Worker], tmp_path: Path) -> None:
    where = ["--address", up.described["temporal"]]
    temporal = [str(find_program()), "operator"]
    subprocess.run([*temporal, "namespace", "create", "-n", "other", *where], check=True, capture_output=True)
    worker = Worker(
        tmp_path,
        PERDURE_DATABASE_URL=up.described["database_url"],
        TEMPORAL_ADDRESS=up.described["temporal"],
        TEMPORAL_NAMESPACE="other",
    )
    workers.append(worker)
    up.until(worker.ready.exists, "the worker to be ready")
    listed = subprocess.run(
        [*temporal, "search-attribute", "list", "-n", "other", *where], check=True, capture_output=True, text=True
    ).stdout
    assert [name for name in SEARCH_ATTRIBUTES if name not in listed] == []


def test_workflows_also_work_in_the_sandbox(up: Stack, workers: list[Worker], tmp_path: Path) -> None:
    worker = Worker(
        tmp_path,
        PERDURE_DATABASE_URL=up.described["database_url"],
        PERDURE_SANDBOX="1",
        TEMPORAL_ADDRESS=up.described["temporal"],
    )
    workers.append(worker)
    up.until(worker.ready.exists, "the worker to be ready")


def test_it_waits_for_temporal_and_postgres_and_says_so(workers: list[Worker], tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nobody = f"127.0.0.1:{taken.getsockname()[1]}"
        worker = Worker(tmp_path, PERDURE_DATABASE_URL=f"postgresql://p:secret@{nobody}/p", TEMPORAL_ADDRESS=nobody)
        workers.append(worker)
        until(lambda: worker.said(f"waiting for Temporal at {nobody}"), "a word about Temporal")
        until(lambda: worker.said("waiting for Postgres"), "a word about Postgres")
        assert worker.process.poll() is None
        assert not worker.said("secret")
        worker.stop()
        assert worker.process.returncode == 0


def test_a_database_of_a_newer_version_is_told_in_one_sentence(workers: list[Worker], tmp_path: Path) -> None:
    with fresh() as stack:
        stack.up()
        url = stack.described["database_url"]
        asyncio.run(_pretend_newer(url))
        worker = Worker(tmp_path, PERDURE_DATABASE_URL=url, TEMPORAL_ADDRESS=stack.described["temporal"])
        workers.append(worker)
        assert worker.process.wait(120) == CANNOT_START
        assert "the database was written by a newer Perdure" in worker.log.read_text().splitlines()[-1]
        assert not worker.said("Traceback")

        stack.ok("down")
        assert "the database was written by a newer Perdure" in stack.refused("up", "--detach")
        assert stack.processes() == []


async def _pretend_newer(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute("UPDATE alembic_version SET version_num = 'from the future'")
    await connection.close()


def test_without_a_database_it_says_what_is_missing(workers: list[Worker], tmp_path: Path) -> None:
    worker = Worker(tmp_path)
    workers.append(worker)
    assert worker.process.wait(120) == CANNOT_START
    assert worker.log.read_text().splitlines()[-1].startswith("PERDURE_DATABASE_URL is not set")


def test_a_worker_outlives_a_temporal_that_goes_away(up: Stack) -> None:
    worker = up.pid("worker")
    os.kill(up.pid("temporal"), signal.SIGSTOP)
    time.sleep(3)
    os.kill(up.pid("temporal"), signal.SIGCONT)
    up.until(lambda: "local" in up.run("fleet").stdout, "an answer")
    assert up.pid("worker") == worker
