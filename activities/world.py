"""What activities work with: the stores, the backends and the agents, given to them once by worker assembly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import UUID

from perdure.backends import Backend
from perdure.blobs import BlobStore
from perdure.model.timing import Timing

if TYPE_CHECKING:
    from temporalio.client import Client

    from perdure.agents.client import Agents
    from perdure.store.database import Database


@dataclass
class World:
    database: Database
    blobs: BlobStore
    backends: Mapping[str, Backend]
    agents: Agents
    temporal: Client
    installation: UUID
    epoch: int
    private_key: bytes
    """X25519, 32 bytes: opens what clients sealed."""

    worker: str
    """This worker's lasting name (``embedded-1``)."""

    incarnation: UUID
    """New every time the process starts."""

    timing: Timing = field(default_factory=Timing)
    code_limit: int = 2 * 1024**3
    retention_days: float = 30.0
