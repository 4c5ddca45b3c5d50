"""JSON of rows to models. The same few texts come again and again in a walk, so what was parsed is kept."""

from __future__ import annotations

from functools import lru_cache

from pydantic import TypeAdapter

from perdure.model.resources import Offer, OfferFailure, Requirements

OFFERS: TypeAdapter[tuple[Offer, ...]] = TypeAdapter(tuple[Offer, ...])
FAILURES: TypeAdapter[tuple[OfferFailure, ...]] = TypeAdapter(tuple[OfferFailure, ...])


@lru_cache(maxsize=4096)
def offers(text: str) -> tuple[Offer, ...]:
    return OFFERS.validate_json(text)


@lru_cache(maxsize=4096)
def requirements(text: str) -> Requirements:
    return Requirements.model_validate_json(text)
