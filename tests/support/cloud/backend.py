"""The backend in front of the fake provider: the protocol, every answer translated to the one tree of errors."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import httpx

from perdure.backends import Endpoint, Order, ProviderInstance
from perdure.model.errors import (
    AgentUnreachable,
    CapacityError,
    InstanceGone,
    OutcomeUnknown,
    ProviderError,
    ProviderThrottled,
)
from perdure.model.messages import Termination
from perdure.model.resources import Offer, Requirements
from tests.support.cloud.provider import BACKEND, State


class CloudBackend:
    """Of one worker.

    Args:
        deadline: seconds after which a call has had its chance.
        settles: seconds after which a machine that is not listed is not there.
    """

    def __init__(
        self,
        url: str,
        offers: Sequence[Offer],
        *,
        name: str = BACKEND,
        deadline: float = 5.0,
        settles: float = 60.0,
    ):
        self.name = name
        self.catalog = sorted(offers, key=lambda offer: offer.price)
        self.deadline = deadline
        self.settles = settles
        self._missing: dict[UUID, float] = {}
        self._http = httpx.AsyncClient(base_url=url, trust_env=False, timeout=None)

    async def close(self) -> None:
        await self._http.aclose()

    def offers(self, requirements: Requirements) -> list[Offer]:
        return self.catalog

    async def create(self, order: Order) -> None:
        made = await self._call(
            "create",
            token=str(order.instance_id),
            kind=order.offer.instance_type,
            name=order.name,
            installation=str(order.installation),
            epoch=order.epoch,
            secret=order.token,
        )
        if not _there(made):
            raise ProviderError(f"{made['id']} was bought with this token before, and was ended")

    async def find(self, instance_id: UUID) -> bool:
        return _there(await self._look(instance_id))

    async def endpoint(self, instance_id: UUID, token: str) -> Endpoint:
        found = await self._look(instance_id)
        if found is None:
            self._missed(instance_id)
            raise AgentUnreachable("the provider does not list it")
        self._missing.pop(instance_id, None)
        if not _there(found):
            raise InstanceGone(f"its instance is gone: the provider says that {found['id']} was ended")
        if found["address"] is None:
            raise AgentUnreachable("the provider has given it no address yet")
        return Endpoint(instance_id, found["address"], token)

    async def address(self, instance_id: UUID) -> str | None:
        found = await self._look(instance_id)
        return None if found is None else found["address"]

    async def terminate(self, instance_id: UUID) -> Termination:
        found = await self._call("terminate", token=str(instance_id))
        if found is None:
            return Termination(gone=True, known=False, message="the provider does not list it")
        if found["state"] == State.GONE:
            return Termination(gone=True)
        return Termination(gone=False, message=f"{found['id']} is {found['state']}")

    async def list(self) -> list[ProviderInstance]:
        return [
            ProviderInstance(UUID(one["token"]), UUID(one["installation"]), one["epoch"], one["age"])
            for one in await self._call("list")
        ]

    def _missed(self, instance_id: UUID) -> None:
        """Lists lag behind: only what has been away for long is gone.

        Raises:
            InstanceGone
        """
        since = self._missing.setdefault(instance_id, time.monotonic())
        if time.monotonic() - since >= self.settles:
            raise InstanceGone("its instance is gone: the provider does not list it any more")

    async def _look(self, instance_id: UUID) -> dict[str, Any] | None:
        return await self._call("look", token=str(instance_id))

    async def _call(self, call: str, **said: Any) -> Any:
        """
        Raises:
            CapacityError, ProviderThrottled, OutcomeUnknown, ProviderError
        """
        try:
            async with asyncio.timeout(self.deadline):
                answer = await self._http.post(f"/{call}", json=said)
        except (httpx.TransportError, TimeoutError) as error:
            raise OutcomeUnknown(f"{call}: the provider does not answer") from error
        if answer.status_code < 300:
            return answer.json()
        message = answer.json()["message"]
        if answer.status_code == 429:
            raise ProviderThrottled(message)
        if answer.status_code >= 500:
            raise OutcomeUnknown(f"{call}: {message}")
        if answer.json()["code"] == "no-capacity":
            raise CapacityError(message)
        raise ProviderError(message)


def _there(found: dict[str, Any] | None) -> bool:
    """Whether it is of use, or may come to be."""
    return found is not None and found["state"] == State.RUNNING
