"""JSON Schema of what users write, made from the models, for editors and for other languages."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from perdure.spec.models.fleet import FleetConfiguration
from perdure.spec.models.standing import Gateway
from perdure.spec.parsing import RUN_TYPES

KINDS: dict[str, type[BaseModel]] = {**RUN_TYPES, "fleet": FleetConfiguration, "gateway": Gateway}


def json_schema(kind: str) -> dict[str, Any]:
    """The schema (draft 2020-12) of one kind of configuration.

    Raises:
        KeyError: no such kind; ``KINDS`` has them all.
    """
    schema = KINDS[kind].model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
