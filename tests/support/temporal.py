"""A real Temporal server for tests: one dev server a session."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from perdure.wire import DATA_CONVERTER


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def temporal_server() -> AsyncIterator[str]:
    """Its address."""
    binary = Path(sys.executable).parent / "temporal"
    assert binary.exists(), "the temporal binary is not installed: make setup"
    environment = await WorkflowEnvironment.start_local(dev_server_existing_path=str(binary))
    try:
        yield environment.client.service_client.config.target_host
    finally:
        await environment.shutdown()


@pytest_asyncio.fixture
async def temporal(temporal_server: str) -> Client:
    """A client of its default namespace, which the session's tests share."""
    return await Client.connect(temporal_server, data_converter=DATA_CONVERTER)
