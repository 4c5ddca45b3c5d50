"""What a claim could get, and why it cannot get the rest: for plans, and for who was refused."""

from __future__ import annotations

from dataclasses import dataclass

from perdure.core.allocation import MAX_OFFERS, FleetRoom, InstanceState, Pool, Wish
from perdure.core.placement import why_not, words
from perdure.model.resources import Offer, OfferFailure


@dataclass(frozen=True)
class Choice:
    """An instance that exists and does, or an offer of one that could be made."""

    fleet: FleetRoom
    offer: Offer
    instance: InstanceState | None = None

    @property
    def availability(self) -> str:
        """``idle``, ``busy``, ``available``, ``not_available`` (the fleet is full)."""
        if self.instance is not None:
            return "idle" if self.instance.free_blocks else "busy"
        return "available" if self.fleet.room else "not_available"


def choices(pool: Pool, wish: Wish) -> list[Choice]:
    """What would do, in the order in which it would be taken: idle instances, offers, then what is busy or full."""
    found: list[Choice] = []
    for fleet in pool.allowed_fleets(wish):
        for instance in pool.instances:
            if instance.fleet_id == fleet.id and pool.blocks(wish, instance.offers, instance.total_blocks):
                found.append(Choice(fleet, instance.offers[0], instance))
        if not wish.requirements.reuse_only:
            found += [Choice(fleet, offer) for offer in pool.makeable(wish, fleet)]
    rank = {"idle": 0, "available": 1, "busy": 2, "not_available": 3}
    return sorted(found, key=lambda it: (rank[it.availability], it.offer.price))


def failures(pool: Pool, wish: Wish) -> tuple[OfferFailure, ...]:
    """Every fleet, instance and offer, and why it does not do."""
    tried: list[OfferFailure] = []
    for fleet in pool.fleets:
        if wish.requirements.fleets and fleet.name not in wish.requirements.fleets:
            continue
        if reason := pool.closed_to(wish, fleet):
            tried.append(_of_fleet(fleet, reason))
            continue
        for instance in pool.instances:
            if instance.fleet_id == fleet.id:
                tried.append(OfferFailure(offer=_label(instance), why=_why_not_instance(wish, instance)))
        tried += _why_none_made(pool, wish, fleet)
    return tuple(tried)


def _why_not_instance(wish: Wish, instance: InstanceState) -> str:
    for offer in instance.offers:
        if reason := why_not(wish.requirements, offer):
            return reason
    if instance.reserved:
        return "is kept for a claim that has waited longer"
    if instance.busy_blocks:
        return f"is busy ({instance.busy_blocks} of {instance.total_blocks} blocks)"
    return f"is free, but {wish.nodes} are needed at once"


def _why_none_made(pool: Pool, wish: Wish, fleet: FleetRoom) -> list[OfferFailure]:
    if wish.requirements.reuse_only:
        return [_of_fleet(fleet, "a new instance is not allowed (creation_policy: reuse)")]
    offers = list(pool.offers(wish.requirements))
    tried = [
        OfferFailure(offer=words(offer), why=reason)
        for offer in offers[:MAX_OFFERS]
        if (reason := why_not(fleet.requirements, offer) or why_not(wish.requirements, offer))
    ]
    if fleet.reserved:
        tried.append(_of_fleet(fleet, "new instances are kept for a claim that has waited longer"))
    elif fleet.nodes_max is not None and fleet.room < wish.nodes:
        tried.append(_of_fleet(fleet, f"has {fleet.living} of at most {fleet.nodes_max} instances (nodes.max)"))
    elif not offers:
        tried.append(_of_fleet(fleet, "no backend offers a new instance"))
    return tried


def _of_fleet(fleet: FleetRoom, why: str) -> OfferFailure:
    return OfferFailure(offer=f"fleet {fleet.name}", why=why)


def _label(instance: InstanceState) -> str:
    return f"{instance.name} ({words(instance.offers[0])})" if instance.offers else instance.name
