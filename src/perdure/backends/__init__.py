"""Where instances come from: one small protocol a backend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from perdure.model.messages import Termination
from perdure.model.resources import Offer, Requirements


@dataclass(frozen=True)
class Order:
    """A purchase. ``instance_id`` is the client token, the tag, and who its agents say they are: the same order
    twice makes one instance. (It is ``purchase`` of the instance's row: each offer that is tried has its own.)"""

    instance_id: UUID
    name: str
    installation: UUID
    epoch: int
    token: str
    """What its agents ask of callers."""

    offer: Offer


@dataclass(frozen=True)
class Endpoint:
    """How to talk to an instance's shim: the path of a unix socket on this machine, and the token."""

    instance_id: UUID
    socket: str
    token: str


@dataclass(frozen=True)
class ProviderInstance:
    """What the provider has, for the sweep."""

    instance_id: UUID
    installation: UUID
    epoch: int
    age: float
    """Seconds."""


class Backend(Protocol):
    """Errors are of ``perdure.model.errors``: CapacityError, ProviderError and those below it."""

    name: str

    def offers(self, requirements: Requirements) -> list[Offer]:
        """All it could make, cheapest first, whether they fit or not (``core.placement`` judges). Never blocks:
        what must be fetched is fetched in the background."""
        ...

    async def create(self, order: Order) -> None:
        """Ask for the instance; returns as soon as the provider accepts. Looks before it buys: idempotent."""
        ...

    async def find(self, instance_id: UUID) -> bool:
        """Whether the provider has it, and not as one that is ending. Lists may lag behind: False is no proof."""
        ...

    async def endpoint(self, instance_id: UUID, token: str) -> Endpoint:
        """Of an instance that was made.

        Raises:
            InstanceGone: it is there no more, whoever ended it. What is only not listed (yet) is not gone.
            AgentUnreachable: it has no address yet, or is not listed.
        """
        ...

    async def address(self, instance_id: UUID) -> str | None:
        """Where the other nodes reach it (an IP); None while the provider has not said."""
        ...

    async def terminate(self, instance_id: UUID) -> Termination:
        """Idempotent. ``gone`` only when the provider says that it is gone, or that it never was; it is not
        ``known``, if that may be because it is not listed yet."""
        ...

    async def list(self) -> list[ProviderInstance]: ...
