"""What a claim of capacity came to, line by line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from perdure.core.story.facts import Claim, Facts, Place
from perdure.core.story.words import clause, counted, every, lasting, listed, sentence
from perdure.model.api import StoryLine
from perdure.model.resources import OfferFailure
from perdure.model.statuses import ClaimStatus

MOST_OFFERS = 5
"""Offers that are named with why they did not do."""


def lines_of_claims(facts: Facts, claims: Sequence[Claim]) -> Iterator[StoryLine]:
    """What was asked for, what there was, and what became of it."""
    for number, claim in enumerate(claims):
        asked = f"It asked {'again ' if number else ''}for {counted(claim.nodes, 'instance')}"
        yield StoryLine(at=claim.queued_at, text=asked + _at_once(claim))
        waited = claim.moved.get(ClaimStatus.WAITING)
        if waited is not None and claim.granted_at is not None:
            took = lasting(claim.queued_at, claim.granted_at)
            text = f"After {took} in the queue it was its turn: it got {_places(claim.places)}."
            yield StoryLine(at=claim.granted_at, text=text)
        yield from _of_making(facts, claim)
        if (
            claim.ended_at is not None
            and ClaimStatus.FAILED in claim.moved
            and ClaimStatus.READY not in claim.moved
        ):
            yield StoryLine(at=claim.ended_at, text=sentence(f"an instance could not be had: {claim.message}"))


def _at_once(claim: Claim) -> str:
    """The end of the sentence that says what it asked for."""
    if claim.status is ClaimStatus.REFUSED:
        return f", and there was no capacity{_why_not(claim)}"
    if ClaimStatus.WAITING in claim.moved:
        return f", and had to wait: there was no capacity{_why_not(claim)}"
    if claim.places:
        return f", and at once got {_places(claim.places)}."
    return "."


def _places(places: Sequence[Place]) -> str:
    """``local-0, which was free``, ``a-0 and a-1, which had to be made``"""
    new = [place.name for place in places if place.new]
    free = [place.name for place in places if not place.new]
    said = [f"{listed(free)}, which {_were(free)} free"] if free else []
    said += [f"{listed(new)}, which had to be made"] if new else []
    return ", and ".join(said)


def _were(names: Sequence[str]) -> str:
    return "was" if len(names) == 1 else "were"


def _why_not(claim: Claim) -> str:
    """What follows ``there was no capacity``, the full stop included."""
    if claim.tried:
        return f"; {_failures(claim.tried)}"
    return f": {clause(claim.message)}." if claim.message else "."


def _failures(failures: Sequence[OfferFailure]) -> str:
    said = [f"{it.offer}: {clause(it.why)}" for it in failures[:MOST_OFFERS]]
    more = f"; and {len(failures) - MOST_OFFERS} more" if len(failures) > MOST_OFFERS else ""
    return f"these offers did not do: {'; '.join(said)}{more}."


def _of_making(facts: Facts, claim: Claim) -> Iterator[StoryLine]:
    """Offers that did not do while its instances were made, and when all were ready."""
    for place in claim.places:
        made = facts.instances.get(place.instance_id)
        if place.new and made is not None and made.failures:
            yield StoryLine(at=claim.granted_at, text=f"To make {place.name}: {_failures(made.failures)}")
    ready = claim.moved.get(ClaimStatus.READY)
    if ready is not None and claim.granted_at is not None and ready > claim.granted_at:
        was = f"{every(claim.nodes)} {'was' if claim.nodes == 1 else 'were'}"
        yield StoryLine(at=ready, text=sentence(f"{was} ready {lasting(claim.granted_at, ready)} later"))
