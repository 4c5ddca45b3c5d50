"""Buying one instance, reaching its shim, and giving the instance back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from uuid import UUID

from temporalio import activity

from activities.contact import Patience, backend_of, endpoint_of, heartbeats
from activities.errors import translated
from activities.world import World
from perdure.backends import Backend, Order
from perdure.core.placement import words
from perdure.model.activities import CREATE_INSTANCE, REACH_INSTANCE, TERMINATE_INSTANCE
from perdure.model.errors import (
    AgentRefused,
    AgentUnreachable,
    CapacityError,
    ControlPlaneError,
    InstanceGone,
    OutcomeUnknown,
    PerdureError,
    ProviderError,
    ProviderThrottled,
)
from perdure.model.messages import Created, InstanceRef, Reached, Termination
from perdure.model.resources import Offer, OfferFailure
from perdure.model.statuses import InstanceStatus
from perdure.store import instances
from perdure.store.instances import InstanceRecord, purchase_id


@dataclass(frozen=True)
class Refusal:
    """Why an offer did not do. ``doubtful``: nobody has said that nothing was made of it. ``final``: a clear no."""

    why: str
    doubtful: bool = False
    final: bool = False


class Instances:
    def __init__(self, world: World):
        self.world = world

    # --- create -----------------------------------------------------------------------------------------------

    @activity.defn(name=CREATE_INSTANCE.name)
    @translated
    async def create_instance(self, ref: InstanceRef) -> Created:
        """Ask for the instance, offer by offer, until a provider accepts; each failure is kept for the user.

        Safe to repeat: the choice is stored before the call, each purchase has an id that is client token and tag,
        and a call whose outcome is unknown is looked up before anything else is tried. An offer that gives no clear
        answer for ``timing.offer`` is given up for the next one; what may have come of it is ended, now, by
        ``terminate_instance``, or by the sweep.
        """
        async with heartbeats(self.world.timing.heartbeat / 3):
            async with self.world.database.transaction() as tx:
                record = await instances.load(tx, ref.instance_id)
            if record.status in (InstanceStatus.TERMINATING, InstanceStatus.TERMINATED):
                return Created(doubtful=record.offer is not None)
            return await self._try_offers(record)

    async def _try_offers(self, record: InstanceRecord) -> Created:
        doubtful = False
        for number in range(_first_to_try(record), len(record.offers)):
            offer = record.offers[number]
            async with self.world.database.transaction() as tx:
                wanted = await instances.choose_offer(tx, record.instance_id, offer)
            if not wanted:
                doubtful = doubtful or record.offer is not None
                break
            refusal = await self._buy(record, number)
            if refusal is None:
                return Created(offer=offer, tried=await self._failures(record))
            doubtful = doubtful or refusal.doubtful
            async with self.world.database.transaction() as tx:
                failure = OfferFailure(offer=words(offer), why=refusal.why)
                await instances.add_failure(tx, record.instance_id, failure)
        return Created(tried=await self._failures(record), doubtful=doubtful)

    async def _failures(self, record: InstanceRecord) -> tuple[OfferFailure, ...]:
        """Of this attempt of the activity and of those before it."""
        async with self.world.database.transaction() as tx:
            return (await instances.load(tx, record.instance_id)).failures

    async def _buy(self, record: InstanceRecord, number: int) -> Refusal | None:
        """One offer, until its provider has given a clear answer; None: it is ours."""
        offer, timing = record.offers[number], self.world.timing
        backend = self.world.backends.get(offer.backend)
        if backend is None:
            return Refusal(f"this worker has no backend {offer.backend!r}", final=True)
        order = Order(
            instance_id=purchase_id(record.instance_id, number),
            name=record.name,
            installation=self.world.installation,
            epoch=self.world.epoch,
            token=record.token,
            offer=offer,
        )
        give_up, pause = time.monotonic() + timing.offer, timing.activity_retry
        doubtful = record.offer == offer
        while True:
            refusal = await self._ask(backend, order, look=doubtful)
            if refusal is None or refusal.final:
                return refusal
            doubtful = doubtful or refusal.doubtful
            if time.monotonic() >= give_up:
                return await self._give_up(backend, order, replace(refusal, doubtful=doubtful))
            await asyncio.sleep(min(pause, max(give_up - time.monotonic(), 0.0)))
            pause = min(2 * pause, timing.activity_retry_max)

    async def _ask(self, backend: Backend, order: Order, *, look: bool) -> Refusal | None:
        """Look whether it is there already, if it may be; else ask for it. Every error is this offer's own: also
        one that nobody foresaw must not have it tried for ever."""
        try:
            if not (look and await backend.find(order.instance_id)):
                await backend.create(order)
        except CapacityError as error:
            return Refusal(error.message, final=True)
        except ProviderThrottled as error:
            return Refusal(error.message)
        except OutcomeUnknown as error:
            return Refusal(error.message, doubtful=True)
        except PerdureError as error:
            return await self._unless_made(backend, order, error)
        except Exception as error:  # noqa: BLE001 (see above)
            activity.logger.exception("%s: asking for %s", backend.name, order.name)
            return Refusal(f"unexpected {type(error).__name__}: {error}", doubtful=True)
        return None

    async def _unless_made(self, backend: Backend, order: Order, error: PerdureError) -> Refusal | None:
        """Providers have said no to what they had made."""
        try:
            made = await backend.find(order.instance_id)
        except ProviderError:
            return Refusal(error.message, doubtful=True)
        return None if made else Refusal(error.message, final=True)

    async def _give_up(self, backend: Backend, order: Order, refusal: Refusal) -> Refusal | None:
        """Unless the last look finds it after all, end what may have come of it. Best effort: that is asked for
        again at the end of the instance, and what comes to light in between, the sweep finds."""
        if refusal.doubtful:
            try:
                if await backend.find(order.instance_id):
                    return None
                await backend.terminate(order.instance_id)
            except Exception:  # noqa: BLE001 (see _ask)
                activity.logger.exception("%s: what came of %s is not known", backend.name, order.instance_id)
        return refusal

    # --- reach ------------------------------------------------------------------------------------------------

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
            except InstanceGone as error:
                return Reached(reached=False, gone=True, message=error.message)
            except AgentUnreachable as error:
                return Reached(reached=False, message=f"its agent could not be reached: {error.message}")

    async def _address(self, record: InstanceRecord) -> str:
        """
        Raises:
            AgentUnreachable: not yet.
            InstanceGone: nor ever.
        """
        try:
            endpoint = await endpoint_of(self.world, record)
            address = await backend_of(self.world, record).address(record.purchase)
            if address is None:
                raise AgentUnreachable("the provider has given it no address yet")
            health = await (await self.world.agents.shim(endpoint)).healthcheck()
        except (AgentRefused, ProviderError) as error:
            raise AgentUnreachable(error.message) from error
        if health.instance_id != record.purchase:
            raise AgentUnreachable(f"instance {health.instance_id} answered in its place")
        return address

    # --- terminate --------------------------------------------------------------------------------------------

    @activity.defn(name=TERMINATE_INSTANCE.name)
    @translated
    async def terminate_instance(self, ref: InstanceRef) -> Termination:
        """Ask every provider that may have something of it to end that, and say what they answered. Safe to repeat:
        one that nobody ever asked for is gone."""
        async with heartbeats(self.world.timing.heartbeat / 3):
            async with self.world.database.transaction() as tx:
                record = await instances.load(tx, ref.instance_id)
            if record.offer is None:
                return Termination(gone=True, message="it was never asked for")
            return _together([await self._terminate(purchase, offer) for purchase, offer in record.purchases])

    async def _terminate(self, purchase: UUID, offer: Offer) -> Termination:
        """
        Raises:
            ControlPlaneError: this worker is not set up for the offer's backend.
        """
        backend = self.world.backends.get(offer.backend)
        if backend is None:
            hint = "start a worker that is set up for it"
            raise ControlPlaneError(f"this worker has no backend {offer.backend!r}", hint=hint)
        try:
            return await backend.terminate(purchase)
        except ProviderError as error:
            return Termination(gone=False, message=error.message)


def _first_to_try(record: InstanceRecord) -> int:
    """The chosen offer's number: those before it have failed."""
    return record.offers.index(record.offer) if record.offer in record.offers else 0


def _together(answers: Iterable[Termination]) -> Termination:
    """Gone is what is gone as a whole."""
    parts = list(answers)
    message = next((it.message for it in parts if not it.gone), "") or parts[-1].message
    return Termination(gone=all(it.gone for it in parts), known=all(it.known for it in parts), message=message)
