from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.agents.docker_tasks import bridged, engine, registry, tasks  # noqa: F401
from tests.agents.processes import Host, host


@pytest.fixture
async def here() -> AsyncIterator[Host]:
    """A host with a running shim; at the end nothing of it may be left."""
    async with host() as one:
        yield one


@pytest.fixture
async def bare() -> AsyncIterator[Host]:
    """The same, where bubblewrap does not work."""
    async with host(PERDURE_SANDBOX="none") as one:
        yield one
