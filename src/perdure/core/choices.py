"""What a claim could get, and why it cannot get the rest: for plans, and for who was refused."""

from __future__ import annotations

from dataclasses import dataclass

from perdure.core.allocation import MAX_OFFERS, FleetRoom, InstanceState, Pool, Wish
from perdure.core.placement import short_words, why_not, words
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


def placeable(pool: Pool, wish: Wish) -> int:
    """How many of the wish's nodes could be placed now, in the fleet with the most room."""
    return max((_placeable_in(pool, wish, fleet) for fleet in pool.allowed_fleets(wish)), default=0)


def failures(pool: Pool, wish: Wish) -> tuple[OfferFailure, ...]:
    """Every fleet, instance and offer that does not do, and why; first what would do, were it free.

    Of a fleet that can place all nodes, only what does not fit is told.
    """
    near: list[OfferFailure] = []
    far: list[OfferFailure] = []
    for fleet in pool.fleets:
        if wish.requirements.fleets and fleet.name not in wish.requirements.fleets:
            continue
        if reason := pool.closed_to(wish, fleet):
            near.append(_of_fleet(fleet, reason))
            continue
        near += _why_no_more(pool, wish, fleet)
        free = {instance.id for instance, _ in pool.reusable(wish, fleet)}
        for instance in pool.instances:
            if instance.fleet_id == fleet.id and instance.id not in free:
                misfit = _misfit(wish, instance)
                (far if misfit else near).append(_of_instance(instance, misfit or _taken(instance)))
        far += [
            OfferFailure(offer=words(offer), name=short_words(offer), why=reason)
            for offer in list(pool.offers(wish.requirements))[:MAX_OFFERS]
            if (reason := why_not(fleet.requirements, offer) or why_not(wish.requirements, offer))
        ]
    return (*near, *far)


def _placeable_in(pool: Pool, wish: Wish, fleet: FleetRoom) -> int:
    reused = len(pool.reusable(wish, fleet))
    may_make = not wish.requirements.reuse_only and not fleet.reserved and bool(pool.makeable(wish, fleet))
    return int(min(wish.nodes, reused + (fleet.room if may_make else 0)))


def _misfit(wish: Wish, instance: InstanceState) -> str | None:
    return next((why for offer in instance.offers if (why := why_not(wish.requirements, offer))), None)


def _taken(instance: InstanceState) -> str:
    if instance.reserved:
        return "is kept for a run that has waited longer"
    if instance.total_blocks > 1:
        return f"is busy ({instance.busy_blocks} of {instance.total_blocks} blocks)"
    return "is busy"


def _why_no_more(pool: Pool, wish: Wish, fleet: FleetRoom) -> list[OfferFailure]:
    """Why this fleet cannot make the instances that are missing."""
    found = _placeable_in(pool, wish, fleet)
    if found == wish.nodes:
        return []
    short = f"has room for {found} of {wish.nodes} nodes: " if wish.nodes > 1 else ""
    if wish.requirements.reuse_only:
        return [_of_fleet(fleet, f"{short}may not make a new instance (creation_policy: reuse)")]
    if fleet.reserved:
        return [_of_fleet(fleet, f"{short}keeps new instances for a run that has waited longer")]
    if not list(pool.offers(wish.requirements)):
        return [_of_fleet(fleet, f"{short}has no backend that offers a new instance")]
    if pool.makeable(wish, fleet) and fleet.nodes_max is not None:
        return [_of_fleet(fleet, f"{short}has {fleet.living} of at most {fleet.nodes_max} instances (nodes.max)")]
    return []


def _of_fleet(fleet: FleetRoom, why: str) -> OfferFailure:
    return OfferFailure(offer=f"fleet {fleet.name}", why=why)


def _of_instance(instance: InstanceState, why: str) -> OfferFailure:
    label = f"{instance.name} ({words(instance.offers[0])})" if instance.offers else instance.name
    return OfferFailure(offer=label, name=instance.name, why=why)
