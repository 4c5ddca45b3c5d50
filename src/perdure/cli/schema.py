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

NAMES = (*spec.KINDS, *REQUESTS)


def show(kind: str) -> None:
    """
    Raises:
        UserError: nothing of that name has a schema.
    """
    if kind in REQUESTS:
        document = REQUESTS[kind].model_json_schema()
    elif kind in spec.KINDS:
        document = spec.json_schema(kind)
    else:
        near = get_close_matches(kind.lower(), NAMES, 1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(NAMES)}"
        raise UserError(f"there is no schema {kind}", hint=hint)
    sys.stdout.write(json.dumps(document, indent=2) + "\n")
