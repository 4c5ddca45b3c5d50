"""Who gets what: one walk along a project's queue, over what is free.

A claim is granted as a whole or not at all: blocks of instances that exist, then instances to be made, counted
against ``nodes.max``. Claims come in the order of the queue (priority, then age); one that does not fit lets those
behind it pass, until it has waited for its ``queue_patience``: from then on it reserves whatever it could use, so
that big gangs do not starve behind small jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from perdure.core.placement import blocks_needed, why_not
from perdure.model.resources import Offer, Requirements
from perdure.model.statuses import InstanceStatus

MAX_OFFERS = 25
"""Of an instance to be made: the cheapest are tried, in order (the reference system's limit)."""

Offers = Callable[[Requirements], Iterable[Offer]]
"""What the backends could make, cheapest first."""

Pin = tuple[str, str]
"""Backend and region."""


@dataclass
class FleetRoom:
    """A fleet, and how many instances it has."""

    id: UUID
    name: str
    active: bool
    nodes_max: int | None
    cluster: bool
    blocks: int
    requirements: Requirements
    idle_duration: float | None
    living: int
    nums: set[int]
    """Taken by its living instances."""

    pin: Pin | None = None
    """Where the instances of a cluster are; None: it has none yet."""

    kinds: tuple[tuple[tuple[Offer, ...], int], ...] = ()
    """What its usable instances are, and how many of each: only known when a claim may reserve."""

    made: int = 0
    """Of the living, those that this walk made."""

    reserved: bool = False
    """New instances are kept for a claim that waits longer."""

    @property
    def room(self) -> float:
        """How many instances may still be made."""
        return float("inf") if self.nodes_max is None else max(self.nodes_max - self.living, 0)


@dataclass
class InstanceState:
    """An instance that takes work: here, or being made."""

    id: UUID
    fleet_id: UUID
    num: int
    name: str
    status: InstanceStatus
    offers: tuple[Offer, ...]
    """What it is; several while it is not known which one it will be."""

    total_blocks: int
    busy_blocks: int
    address: str | None = None
    reserved: bool = False

    @property
    def ready(self) -> bool:
        return self.status in (InstanceStatus.IDLE, InstanceStatus.BUSY) and self.address is not None

    @property
    def free_blocks(self) -> int:
        return self.total_blocks - self.busy_blocks


@dataclass(frozen=True)
class Wish:
    """A claim, as the walk sees it."""

    claim_id: UUID
    nodes: int
    requirements: Requirements
    shape: str
    overdue: bool = False
    """Has waited for its ``queue_patience``."""

    asleep: bool = False
    """Its ``not_before`` has not come."""

    idle_duration: float | None = 300.0


def idle_duration(wish: Wish, fleet: FleetRoom) -> float | None:
    """Seconds that an instance made for this claim stays when its last job has ended; None: for ever.

    What the run or the fleet says; the shorter, if both do. If neither does, the shorter of their defaults.
    """
    run_says, fleet_says = ("idle_duration" in it.requirements.firm for it in (wish, fleet))
    if run_says != fleet_says:
        return wish.idle_duration if run_says else fleet.idle_duration
    return min((it for it in (wish.idle_duration, fleet.idle_duration) if it is not None), default=None)


@dataclass(frozen=True)
class Seat:
    """What one node gets: blocks of an instance that exists, or an instance to be made."""

    node: int
    fleet: FleetRoom
    blocks: int
    instance: InstanceState | None = None
    num: int = 0
    """Of the instance to be made."""

    offers: tuple[Offer, ...] = ()
    """Of the instance to be made, to try in order."""

    @property
    def name(self) -> str:
        return self.instance.name if self.instance else f"{self.fleet.name}-{self.num}"


@dataclass
class Pool:
    """All that is free in a project, and what could be made."""

    fleets: list[FleetRoom]
    instances: list[InstanceState]
    offers: Offers
    _makeable: dict[tuple[UUID, str], tuple[Offer, ...]] = field(
        default_factory=dict[tuple[UUID, str], tuple[Offer, ...]]
    )
    _judged: dict[tuple[str, tuple[Offer, ...], int], int | None] = field(
        default_factory=dict[tuple[str, tuple[Offer, ...], int], "int | None"]
    )

    @property
    def exhausted(self) -> bool:
        """Nobody can be granted anything."""
        return not any(it.free_blocks and not it.reserved for it in self.instances) and not any(
            fleet.active and fleet.room and not fleet.reserved for fleet in self.fleets
        )

    def grant(self, wish: Wish) -> tuple[Seat, ...] | None:
        """Seats for all nodes, taken out of the pool; None: it does not fit, and nothing has changed."""
        if wish.asleep:
            return None
        found = [seats for fleet in self.allowed_fleets(wish) if (seats := self._seats(wish, fleet)) is not None]
        if not found:
            return None
        best = min(found, key=_cost)
        for seat in best:
            self._take(seat)
        return best

    def reserve(self, wish: Wish) -> None:
        """Keep for this claim whatever it could use, in every fleet that could ever hold it."""
        for fleet in self.allowed_fleets(wish):
            makeable = bool(self.makeable(wish, fleet)) and not wish.requirements.reuse_only
            usable = sum(count for offers, count in fleet.kinds if self.blocks(wish, offers, fleet.blocks))
            if usable + (fleet.room + fleet.made if makeable else 0) < wish.nodes:
                continue
            fleet.reserved = fleet.reserved or makeable
            for instance in self.instances:
                if instance.fleet_id == fleet.id and self.blocks(wish, instance.offers, instance.total_blocks):
                    instance.reserved = True

    # --- one fleet ------------------------------------------------------------------------------------------

    def allowed_fleets(self, wish: Wish) -> list[FleetRoom]:
        """Fleets that the claim may be placed in."""
        named = wish.requirements.fleets
        return [it for it in self.fleets if (not named or it.name in named) and not self.closed_to(wish, it)]

    @staticmethod
    def closed_to(wish: Wish, fleet: FleetRoom) -> str | None:
        """Why this fleet does not take such a claim at all."""
        if not fleet.active:
            return "is being deleted"
        if wish.nodes > 1 and not fleet.cluster:
            return f"{wish.nodes} nodes need a fleet with `placement: cluster`"
        return None

    def _seats(self, wish: Wish, fleet: FleetRoom) -> tuple[Seat, ...] | None:
        reused = self.reusable(wish, fleet)[: wish.nodes]
        missing = wish.nodes - len(reused)
        seats = [Seat(node, fleet, blocks, instance) for node, (instance, blocks) in enumerate(reused)]
        if missing:
            offers = self.makeable(wish, fleet)
            if not offers or wish.requirements.reuse_only or fleet.reserved or fleet.room < missing:
                return None
            blocks = fleet.blocks if wish.nodes > 1 else self.blocks(wish, offers, fleet.blocks)
            if blocks is None:
                return None
            nums = _lowest_free(fleet.nums, missing)
            seats += [
                Seat(len(reused) + at, fleet, blocks, num=num, offers=offers[:MAX_OFFERS])
                for at, num in enumerate(nums)
            ]
        return tuple(seats)

    def reusable(self, wish: Wish, fleet: FleetRoom) -> list[tuple[InstanceState, int]]:
        """Instances that do, best first, with the blocks to take: those that are here before those that are coming,
        then the cheapest, then the tightest fit."""
        fitting: list[tuple[tuple[float, ...], InstanceState, int]] = []
        for instance in self.instances:
            if instance.fleet_id != fleet.id or instance.reserved:
                continue
            blocks = self.blocks(wish, instance.offers, instance.total_blocks)
            if blocks is None or blocks > instance.free_blocks:
                continue
            if wish.nodes > 1:
                if instance.busy_blocks:
                    continue
                blocks = instance.total_blocks
            price = max(offer.price for offer in instance.offers) * blocks / instance.total_blocks
            order = (not instance.ready, price, instance.free_blocks - blocks, instance.num)
            fitting.append((order, instance, blocks))
        return [(instance, blocks) for _, instance, blocks in sorted(fitting, key=lambda it: it[0])]

    def makeable(self, wish: Wish, fleet: FleetRoom) -> tuple[Offer, ...]:
        """What could be made for it in this fleet, cheapest first; of one place, if the fleet is a cluster."""
        known = self._makeable.get((fleet.id, wish.shape))
        if known is None:
            known = tuple(
                sorted(
                    (it for it in self.offers(wish.requirements) if self._fits(wish, fleet, it, fleet.blocks)),
                    key=lambda offer: offer.price,
                )
            )
            self._makeable[fleet.id, wish.shape] = known
        if not fleet.cluster or not known:
            return known
        place = fleet.pin or _place(known[0])
        return tuple(offer for offer in known if _place(offer) == place)

    def _fits(self, wish: Wish, fleet: FleetRoom, offer: Offer, total: int) -> bool:
        return why_not(fleet.requirements, offer) is None and self.blocks(wish, (offer,), total) is not None

    def blocks(self, wish: Wish, offers: tuple[Offer, ...], total: int) -> int | None:
        """How many of an instance's blocks do, whichever of the offers it will be; None: it does not do.

        Instances of one kind share their offers, so that each kind is judged once a walk.
        """
        key = (wish.shape, offers, total)
        if key not in self._judged:
            needed = [blocks_needed(wish.requirements, offer, total) for offer in offers]
            known = [it for it in needed if it is not None]
            self._judged[key] = max(known, default=None) if len(known) == len(needed) else None
        return self._judged[key]

    @staticmethod
    def _take(seat: Seat) -> None:
        if seat.instance is not None:
            seat.instance.busy_blocks += seat.blocks
            return
        seat.fleet.living += 1
        seat.fleet.made += 1
        seat.fleet.nums.add(seat.num)
        if seat.fleet.cluster and seat.fleet.pin is None:
            seat.fleet.pin = _place(seat.offers[0])


@dataclass
class Walk:
    """One walk along the queue, in pages: nobody is granted anything before those in front had their turn."""

    pool: Pool
    failed: set[str] = field(default_factory=set[str])
    """Shapes that did not fit: no later claim of such a shape will, since a walk only takes."""

    reserving: set[str] = field(default_factory=set[str])
    """Shapes that have reserved what they could use."""

    def along(self, page: Iterable[Wish]) -> list[tuple[Wish, tuple[Seat, ...]]]:
        """Grant along the next part of the queue."""
        granted: list[tuple[Wish, tuple[Seat, ...]]] = []
        for wish in page:
            if self.pool.exhausted:
                break
            seats = None if wish.shape in self.failed else self.pool.grant(wish)
            if seats is not None:
                granted.append((wish, seats))
            elif not wish.asleep:
                self.failed.add(wish.shape)
                if wish.overdue and wish.shape not in self.reserving:
                    self.pool.reserve(wish)
                    self.reserving.add(wish.shape)
        return granted


def _cost(seats: Sequence[Seat]) -> tuple[float, float]:
    """Reuse first, then price."""
    made = [seat for seat in seats if seat.instance is None]
    price = 0.0
    for seat in seats:
        offers = seat.instance.offers if seat.instance else seat.offers
        price += offers[0].price if offers else 0.0
    return len(made), price


def _lowest_free(taken: set[int], count: int) -> list[int]:
    found: list[int] = []
    num = 0
    while len(found) < count:
        if num not in taken:
            found.append(num)
        num += 1
    return found


def _place(offer: Offer) -> Pin:
    return offer.backend, offer.region
