"""Instances: what was ordered, what was bought, where it is."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid5

from sqlalchemy import Row, bindparam, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from perdure.core.allocation import Seat
from perdure.model.errors import NotFound
from perdure.model.resources import Offer, OfferFailure
from perdure.model.statuses import InstanceReason, InstanceStatus
from perdure.store import parsing


@dataclass(frozen=True)
class InstanceRecord:
    """An instance's row, as remote steps need it."""

    instance_id: UUID
    name: str
    num: int
    project: str
    fleet_id: UUID
    backend: str
    status: InstanceStatus
    reason: InstanceReason | None
    offers: tuple[Offer, ...]
    """To try in order; kept at the grant."""

    offer: Offer | None
    """The one that was taken."""

    failures: tuple[OfferFailure, ...]
    token: str
    address: str | None
    total_blocks: int
    busy_blocks: int

    @property
    def purchases(self) -> tuple[tuple[UUID, Offer], ...]:
        """Everything a provider was asked for: what it is known by there, and the offer; the last one is the one
        that counts. Those before it failed, and may have left something."""
        if self.offer is None:
            return ()
        last = self.offers.index(self.offer) if self.offer in self.offers else 0
        asked = (*self.offers[:last], self.offer)
        return tuple((purchase_id(self.instance_id, number), offer) for number, offer in enumerate(asked))

    @property
    def purchase(self) -> UUID:
        """What its provider and its agents know it by."""
        return self.purchases[-1][0] if self.offer is not None else self.instance_id


def purchase_id(instance_id: UUID, number: int) -> UUID:
    """Client token, tag, and identity for the agents, of the purchase of an instance's offer number so-and-so.

    Each offer has its own, so that what one left behind is never taken for what the next one made. That of the
    first is the instance's.
    """
    return uuid5(instance_id, f"purchase {number}") if number else instance_id


_COLUMNS = """
    i.id, i.name, i.num, p.name AS project, i.fleet_id, i.backend, i.status, i.reason, i.offers, i.offer,
    i.failures, i.token, i.address, i.total_blocks, i.busy_blocks
"""


async def load(tx: AsyncConnection, instance_id: UUID) -> InstanceRecord:
    """Raises: NotFound."""
    query = text(f"SELECT {_COLUMNS} FROM instances i JOIN projects p ON p.id = i.project_id WHERE i.id = :id")
    row = (await tx.execute(query, {"id": instance_id})).one_or_none()
    if row is None:
        raise NotFound(f"there is no instance {instance_id}")
    return _record(row)


async def living(tx: AsyncConnection) -> list[InstanceRecord]:
    """Every instance that its provider has not said is gone."""
    query = (
        f"SELECT {_COLUMNS} FROM instances i JOIN projects p ON p.id = i.project_id WHERE i.status <> 'terminated'"
    )
    return [_record(row) for row in await tx.execute(text(query))]


_MAKE = text("""
    INSERT INTO instances (id, project_id, fleet_id, num, name, status, message, backend, region, offers,
                           token, total_blocks, busy_blocks, idle_duration, idle_since)
    VALUES (:id, :project, :fleet, :num, :name, 'pending', '', :backend, :region, :offers,
            :token, :blocks, 0, :idle_duration, now())
""").bindparams(bindparam("offers", type_=JSONB))


async def make(tx: AsyncConnection, project_id: UUID, instance_id: UUID, seat: Seat, idle: float | None) -> None:
    """Write the intent of an instance, in a fleet, with the offers to try in order."""
    values: dict[str, Any] = {
        "id": instance_id,
        "project": project_id,
        "fleet": seat.fleet.id,
        "num": seat.num,
        "name": seat.name,
        "backend": seat.offers[0].backend,
        "region": seat.offers[0].region,
        "offers": [offer.model_dump(mode="json") for offer in seat.offers],
        "token": secrets.token_hex(32),
        "blocks": seat.fleet.blocks,
        "idle_duration": idle,
    }
    await tx.execute(_MAKE, values)


async def choose_offer(tx: AsyncConnection, instance_id: UUID, offer: Offer) -> bool:
    """Write which offer is about to be asked for (again, for the next one). Write it before the call.

    False if the instance is not to be made any more.
    """
    query = text("""
        UPDATE instances SET status = 'provisioning', offer = :offer, backend = :backend, region = :region
        WHERE id = :id AND status IN ('pending', 'provisioning')
    """).bindparams(bindparam("offer", type_=JSONB))
    values: dict[str, Any] = {
        "id": instance_id,
        "offer": offer.model_dump(mode="json"),
        "backend": offer.backend,
        "region": offer.region,
    }
    return (await tx.execute(query, values)).rowcount == 1


async def add_failure(tx: AsyncConnection, instance_id: UUID, failure: OfferFailure) -> None:
    """Keep why an offer did not do, for the user to read. The same words twice are kept once."""
    query = text("""
        UPDATE instances SET failures = failures || jsonb_build_array(CAST(:failure AS jsonb))
        WHERE id = :id AND NOT failures @> jsonb_build_array(CAST(:failure AS jsonb))
    """).bindparams(bindparam("failure", type_=JSONB))
    await tx.execute(query, {"id": instance_id, "failure": failure.model_dump(mode="json")})


async def set_reached(tx: AsyncConnection, instance_id: UUID, address: str | None = None) -> None:
    """Its shim answered just now, and is at ``address`` if that was learnt."""
    query = text(
        "UPDATE instances SET heard_at = now(), address = coalesce(CAST(:address AS text), address) WHERE id = :id"
    )
    await tx.execute(query, {"id": instance_id, "address": address})


def _record(row: Row[Any]) -> InstanceRecord:
    return InstanceRecord(
        instance_id=row.id,
        name=row.name,
        num=row.num,
        project=row.project,
        fleet_id=row.fleet_id,
        backend=row.backend,
        status=InstanceStatus(row.status),
        reason=InstanceReason(row.reason) if row.reason else None,
        offers=parsing.OFFERS.validate_python(row.offers),
        offer=Offer.model_validate(row.offer) if row.offer else None,
        failures=parsing.FAILURES.validate_python(row.failures),
        token=row.token,
        address=row.address,
        total_blocks=row.total_blocks,
        busy_blocks=row.busy_blocks,
    )
