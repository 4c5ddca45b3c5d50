"""``perdure schema``."""

from __future__ import annotations

import json
import sys
from difflib import get_close_matches

from perdure import spec
from perdure.model.errors import UserError
from perdure.model.messages import FleetInput, RunRequest

REQUESTS = {"run-request": RunRequest, "fleet-request": FleetInput}
"""What RunWorkflow and FleetWorkflow take."""


def show(kind: str | None) -> None:
    names = [*spec.KINDS, *REQUESTS]
    if kind is None:
        document = {name: _schema(name) for name in names}
    elif kind in names:
        document = _schema(kind)
    else:
        near = get_close_matches(kind, names, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
        raise UserError(f"there is no schema {kind}", hint=hint)
    sys.stdout.write(json.dumps(document, indent=2) + "\n")


def _schema(name: str) -> dict[str, object]:
    return REQUESTS[name].model_json_schema() if name in REQUESTS else spec.json_schema(name)
