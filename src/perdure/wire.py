"""How values travel through Temporal: as JSON, pydantic's where a type is known.

Where none is known, as for what anybody may start a workflow with, what cannot be read arrives as ``Unreadable``,
for the workflow to refuse. (Tried: an error while it is decoded is an error of the workflow task, which Temporal
retries for ever: nobody is told, and the run can be neither seen nor stopped.)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from google.protobuf.json_format import ParseError
from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import DataConverter

from perdure.model.requests import Unreadable


class PayloadConverter(PydanticPayloadConverter):
    """Pydantic's, and patient where no type is wanted."""

    def from_payloads(self, payloads: Sequence[Payload], type_hints: list[type] | None = None) -> list[Any]:
        hints: Sequence[type | None] = type_hints or [None] * len(payloads)
        return [self._read(payload, hint) for payload, hint in zip(payloads, hints, strict=False)]

    def _read(self, payload: Payload, hint: type | None) -> Any:
        if hint not in (None, Any):
            return super().from_payloads([payload], [hint])[0]  # type: ignore[list-item]
        encoding = payload.metadata.get("encoding", b"")
        if encoding == b"binary/null":
            return None
        if encoding == b"json/protobuf" and payload.metadata.get("messageType", b"").startswith(b"temporal.api."):
            try:
                return super().from_payloads([payload])[0]  # Temporal's own answers, such as a workflow's metadata
            except (RuntimeError, ParseError) as error:
                return Unreadable(f"cannot be read: {str(error)[:200]}")
        if encoding != b"json/plain":
            return Unreadable(f"is encoded as {encoding[:40]!r}, where json/plain is wanted")
        try:
            return json.loads(payload.data)
        except (ValueError, RecursionError) as error:
            return Unreadable(f"is not JSON that can be read: {str(error)[:200]}")


DATA_CONVERTER = DataConverter(payload_converter_class=PayloadConverter)
