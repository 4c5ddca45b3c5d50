"""Buying one instance, reaching its shim, and giving the instance back."""

from __future__ import annotations

import asyncio
import time

from temporalio import activity

from activities.contact import Patience, backend_of, endpoint_of, heartbeats
from activities.errors import translated
from activities.world import World
from perdure.backends import Order
from perdure.core.placement import words
from perdure.model.activities import CREATE_INSTANCE, REACH_INSTANCE, TERMINATE_INSTANCE
from perdure.model.errors import (
    AgentRefused,
    AgentUnreachable,
    CapacityError,
    OutcomeUnknown,
    ProviderError,
    ProviderThrottled,
)
from perdure.model.messages import Created, InstanceRef, Reached, Termination
from perdure.model.resources import Offer, OfferFailure
from perdure.model.statuses import InstanceStatus
from perdure.store import instances
from perdure.store.instances import InstanceRecord

THROTTLED_PAUSE = 2.0
"""Seconds before an offer is asked for again when the provider wants us slower."""


class Instances:
    def __init__(self, world: World):
        self.world = world

    @activity.defn(name=CREATE_INSTANCE.name)
    @translated
    async def create_instance(self, ref: InstanceRef) -> Created:
        """Ask for the instance, offer by offer, until a provider accepts; each failure is kept for the user.

        Safe to repeat: the choice is stored before the call, the instance's id is client token and tag, and a call
        whose outcome is unknown is looked up before anything else is tried.

        Raises:
            OutcomeUnknown: nobody can say yet whether it exists (retried: look, then act).
        """
        async with heartbeats(self.world.timing.heartbeat / 3):
            async with self.world.database.transaction() as tx:
                record = await instances.load(tx, ref.instance_id)
            if record.status in (InstanceStatus.TERMINATING, InstanceStatus.TERMINATED):
                return Created()
            if record.offer is not None and await backend_of(self.world, record).find(ref.instance_id):
                return Created(offer=record.offer)
            return await self._try_offers(record)

    async def _try_offers(self, record: InstanceRecord) -> Created:
        tried: list[OfferFailure] = []
        for offer in _still_to_try(record):
            async with self.world.database.transaction() as tx:
                wanted = await instances.choose_offer(tx, record.instance_id, offer)
            if not wanted:
                break
            try:
                await self._create(record, offer)
            except (CapacityError, ProviderError) as error:
                if isinstance(error, OutcomeUnknown):
                    raise
                failure = OfferFailure(offer=words(offer), why=error.message)
                async with self.world.database.transaction() as tx:
                    await instances.add_failure(tx, record.instance_id, failure)
                tried.append(failure)
            else:
                return Created(offer=offer, tried=tuple(tried))
        return Created(tried=tuple(tried))

    async def _create(self, record: InstanceRecord, offer: Offer) -> None:
        backend = self.world.backends.get(offer.backend)
        if backend is None:
            raise ProviderError(f"this worker has no backend {offer.backend!r}")
        order = Order(
            instance_id=record.instance_id,
            name=record.name,
            installation=self.world.installation,
            epoch=self.world.epoch,
            token=record.token,
            offer=offer,
        )
        give_up = time.monotonic() + self.world.timing.provisioning / 2
        while True:
            try:
                return await backend.create(order)
            except ProviderThrottled:
                if time.monotonic() > give_up:
                    raise
                await asyncio.sleep(THROTTLED_PAUSE)
            except OutcomeUnknown:
                if await backend.find(record.instance_id):
                    return None
                raise

    @activity.defn(name=REACH_INSTANCE.name)
    @translated
    async def reach_instance(self, ref: InstanceRef) -> Reached:
        """Wait for the instance's address and its shim's first answer, up to ``timing.provisioning``.

        Only a shim that says it is this very instance counts. Safe to repeat.
        """
        patience = Patience.resumed(self.world.timing.provisioning)
        async with heartbeats(self.world.timing.heartbeat / 3, patience.details):
            async with self.world.database.transaction() as tx:
                record = await instances.load(tx, ref.instance_id)
            try:
                return Reached(address=await patience(lambda: self._address(record)))
            except AgentUnreachable as error:
                return Reached(reached=False, message=f"its agent could not be reached: {error.message}")

    async def _address(self, record: InstanceRecord) -> str:
        """
        Raises:
            AgentUnreachable: not yet.
        """
        try:
            address = await backend_of(self.world, record).address(record.instance_id)
            if address is None:
                raise AgentUnreachable("the provider has given it no address yet")
            shim = await self.world.agents.shim(await endpoint_of(self.world, record))
            health = await shim.healthcheck()
        except (AgentRefused, ProviderThrottled, OutcomeUnknown) as error:
            raise AgentUnreachable(error.message) from error
        if health.instance_id != record.instance_id:
            raise AgentUnreachable(f"instance {health.instance_id} answered in its place")
        return address

    @activity.defn(name=TERMINATE_INSTANCE.name)
    @translated
    async def terminate_instance(self, ref: InstanceRef) -> Termination:
        """Ask every provider that may have it to end the instance, and say what they answered. Safe to repeat: one
        that nobody ever asked for is gone."""
        async with heartbeats(self.world.timing.heartbeat / 3):
            async with self.world.database.transaction() as tx:
                record = await instances.load(tx, ref.instance_id)
            if record.offer is None:
                return Termination(gone=True, message="it was never asked for")
            try:
                return await backend_of(self.world, record).terminate(ref.instance_id)
            except ProviderError as error:
                return Termination(gone=False, message=error.message)


def _still_to_try(record: InstanceRecord) -> tuple[Offer, ...]:
    """The offers from the chosen one on: those before it have said a clear no."""
    if record.offer is None or record.offer not in record.offers:
        return record.offers
    return record.offers[record.offers.index(record.offer) :]
