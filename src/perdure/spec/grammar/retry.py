"""Retry: true, false, or when, how often and for how long."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, Tag

from perdure.spec.grammar.base import SWITCHES, Written, by_form, not_empty, whole
from perdure.spec.grammar.durations import Duration
from perdure.spec.grammar.forms import SWITCH, Short
from perdure.spec.grammar.lifecycle import ExitCodes
from perdure.spec.grammar.setting import OFF, Off

RetryEventName = Literal["no-capacity", "interruption", "error"]
ALL_RETRY_EVENTS: tuple[RetryEventName, ...] = ("no-capacity", "interruption", "error")


class RetrySpec(Written):
    """When a run that ended badly is run again."""

    on_events: Annotated[tuple[RetryEventName, ...], AfterValidator(not_empty)] | None = None
    """After what. Unset: all of them."""

    duration: Duration | None = None
    """The window in which it is tried again; ``1h`` if unset."""

    max_attempts: Annotated[int, Field(ge=1), BeforeValidator(whole)] | None = None
    """Submissions in all, the first one included. Ours."""

    backoff: Annotated[tuple[Duration, ...], AfterValidator(not_empty)] | None = None
    """How long to wait before each attempt; the last one holds for all that follow. Ours."""

    on_exit_codes: Annotated[tuple[ExitCodes, ...], AfterValidator(not_empty)] | None = None
    """Only these exit codes count as an error worth another attempt: ``137`` or ``1..127``. Ours."""

    scope: Literal["node", "replica"] | None = None
    """What is run again when one node of several fails: that node, or (unset) all of its replica. Ours."""


def _retry(value: object) -> object:
    if isinstance(value, str):
        value = SWITCHES.get(value.lower(), value)
    if value is True:
        return {}
    return OFF if value is False else value


def _retry_form(value: object) -> str | None:
    if value == OFF:
        return "<off>"
    return "<on>" if isinstance(value, dict | RetrySpec) else None


Retry = Annotated[
    Annotated[RetrySpec, Tag("<on>")] | Annotated[Off, Tag("<off>")],
    by_form(
        _retry_form,
        "is neither true, false nor a mapping with on_events and duration",
        "write true, off, or {max_attempts: 3}, {duration: 1h}, {on_events: [error]}",
    ),
    BeforeValidator(_retry),
    Short(SWITCH),
]
