"""Embedded stacks with the numbers of their lifecycle shrunk, each shared by the tests of a module."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from tests.support.deaths import Deaths
from tests.support.runs import Runs
from tests.support.stack import fresh

QUICK = {
    "heartbeat": 2.0,
    "watch_heartbeat": 3.0,
    "activity_retry": 0.1,
    "retry_backoff": [0.5],
    "stop_grace": 2.0,
    "sweep_grace": 3.0,
}


@contextmanager
def installed(**environ: str) -> Iterator[Runs]:
    """A stack that is up, and leaves nothing."""
    with fresh(environ={"PERDURE_TIMING": json.dumps(QUICK), **environ}) as stack:
        stack.up()
        yield Runs(stack)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def runs() -> AsyncIterator[Runs]:
    with installed() as some:
        yield some


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def deadly() -> AsyncIterator[tuple[Runs, Deaths]]:
    """A stack whose worker dies where ``Deaths.at`` says."""
    folder = open_folder()
    deaths = Deaths(folder)
    with installed(**deaths.environ) as some:
        yield some, deaths
    shutil.rmtree(folder)


@pytest.fixture
def work() -> Iterator[Path]:
    """A folder that jobs may write, to count their executions in."""
    folder = open_folder()
    yield folder
    shutil.rmtree(folder)


def open_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    folder.chmod(0o777)
    return folder
