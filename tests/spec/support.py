"""Short ways to try a configuration."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pydantic import TypeAdapter, ValidationError

from perdure import spec
from perdure.model.errors import FieldError, InvalidConfiguration
from perdure.spec.effective import EffectiveRun

SUBMITTED = datetime(2026, 1, 2, tzinfo=UTC)
RUN_ID = UUID("00000000-0000-4000-8000-000000000001")


def fixtures() -> Path:
    """The folder of reference configurations, beside the repository wherever the tests run."""
    folder = Path(__file__).parents[3] / "shared" / "fixtures"
    if not folder.is_dir():
        pytest.fail(f"the reference configurations are absent: there is no {folder}", pytrace=False)
    return folder


def task(text: str) -> spec.Document:
    """A task that runs one command, with these lines."""
    return spec.load_yaml(f"type: task\ncommands: [x]\n{text}")


def resolve(mapping: object, **options: Any) -> EffectiveRun:
    settings: dict[str, Any] = {"run_id": RUN_ID, "project": "main", "name": "hello", "submitted_at": SUBMITTED}
    return spec.resolve(mapping, **(settings | options))


def mistakes(mapping: object, **options: Any) -> list[FieldError]:
    """Everything that is wrong with it, as submitting it would say; empty if nothing is."""
    try:
        resolve(mapping, **options)
    except InvalidConfiguration as error:
        return error.errors
    return []


def unreadable(text: str | bytes) -> FieldError:
    """The one thing that is wrong with a text."""
    with pytest.raises(InvalidConfiguration) as caught:
        spec.load_yaml(text)
    assert len(caught.value.errors) == 1
    return caught.value.errors[0]


def value(kind: Any, written: object) -> Any:
    """What is read of a value of this type."""
    return TypeAdapter(kind).dump_python(TypeAdapter(kind).validate_python(written))


def refused(kind: Any, written: object) -> bool:
    """Whether it is no value of this type."""
    try:
        TypeAdapter(kind).validate_python(written)
    except ValidationError:
        return True
    return False
