"""Values of ours that say how a run ends and is tried again: exit codes, signals, time zones, deadlines."""

from __future__ import annotations

import re
from datetime import datetime
from difflib import get_close_matches
from typing import Annotated
from zoneinfo import ZoneInfo, available_timezones

from pydantic import BeforeValidator, PlainValidator, WithJsonSchema

from perdure.spec.grammar.base import told, wrong
from perdure.spec.grammar.durations import seconds
from perdure.spec.grammar.forms import any_case, scalar

SIGNALS = (
    "SIGTERM",
    "SIGINT",
    "SIGQUIT",
    "SIGHUP",
    "SIGUSR1",
    "SIGUSR2",
    "SIGABRT",
    "SIGALRM",
    "SIGCONT",
    "SIGWINCH",
)
"""What a process may be asked to stop with; SIGKILL follows by itself."""

_EXITS = re.compile(r"([0-9]{1,3})(?: *\.\. *([0-9]{1,3}))?")
_MOMENT = "2026-12-31T18:00:00Z"
_COUNTED = re.compile(r"[+-]?[.0-9]")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ]")


def signal_name(value: object) -> str:
    """``SIGTERM``, also as ``term``."""
    if isinstance(value, str):
        name = "SIG" + value.upper().removeprefix("SIG")
        if name in SIGNALS:
            return name
        if name == "SIGKILL":
            raise wrong("is SIGKILL, which no process can hear", "it is sent by itself when stop_grace is over")
    raise wrong(f"is not a signal to stop with: {told(value)}", f"one of {', '.join(SIGNALS)}")


def exit_codes(value: object) -> tuple[int, int]:
    """``137``, or ``1..127``, as its lowest and highest code."""
    if isinstance(value, int | str) and not isinstance(value, bool) and (found := _EXITS.fullmatch(str(value))):
        low, high = int(found[1]), int(found[2] or found[1])
        if low > high:
            raise wrong(f"begins after it ends: {told(value)}", f"write {high}..{low}")
        if high <= 255:
            return low, high
    raise wrong(f"is not an exit code: {told(value)}", "write 0 to 255, or a range such as 1..127")


def time_zone(value: object) -> str:
    """A name of the IANA data base: ``Europe/Berlin``."""
    if isinstance(value, str) and len(value) <= 64:
        try:
            return ZoneInfo(value).key
        except (KeyError, ValueError, OSError):
            pass
        known = {name.lower(): name for name in available_timezones() if "/" in name and name[:4] != "Etc/"}
        close = get_close_matches(value.lower(), list(known), n=1, cutoff=0.6)
        if close:
            raise wrong(f"is not a time zone: {told(value)}", f"did you mean {known[close[0]]}?")
    raise wrong(f"is not a time zone: {told(value)}", "write the place by its name, such as Europe/Berlin, or UTC")


def moment_or_duration(value: object) -> int | datetime:
    """Seconds, or a moment with its zone (RFC 3339)."""
    if isinstance(value, str) and _DATE.match(value):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            raise wrong(f"is not a time: {told(value)}", f"write {_MOMENT}") from None
        if moment.tzinfo is None:
            raise wrong(f"is a time without a zone: {told(value)}", f"write {value}Z for UTC, or {value}+02:00")
        return moment
    if not isinstance(value, str | int | float) or (isinstance(value, str) and not _COUNTED.match(value)):
        raise wrong(f"is neither a duration nor a moment: {told(value)}", f"write 12h, or {_MOMENT}")
    return seconds(value)


def deadline(value: object) -> int | datetime:
    """Seconds from submission, or a moment with its zone (RFC 3339)."""
    found = moment_or_duration(value)
    if found == 0:
        raise wrong("is 0: a run that may last no time cannot be run", f"write 12h, or {_MOMENT}")
    return found


_EXIT_SCHEMA = scalar(
    "exit code or range",
    "integer",
    "string",
    pattern="[0-9]{1,3}( *[.][.] *[0-9]{1,3})?",
    examples=["137", "1..127"],
) | {"minimum": 0, "maximum": 255}
ExitCodes = Annotated[tuple[int, int], BeforeValidator(exit_codes), WithJsonSchema(_EXIT_SCHEMA)]
"""Lowest and highest."""

_SIGNAL = scalar(
    "signal",
    "string",
    pattern="|".join(f"({any_case('SIG')})?{any_case(name[3:])}" for name in SIGNALS),
    examples=SIGNALS,
)
SignalName = Annotated[str, PlainValidator(signal_name), WithJsonSchema(_SIGNAL)]
TimeZone = Annotated[
    str, PlainValidator(time_zone), WithJsonSchema(scalar("time zone", "string", examples=["Europe/Berlin"]))
]
Deadline = Annotated[
    int | datetime,
    BeforeValidator(deadline),
    WithJsonSchema(scalar("duration or time", "number", "string", examples=["12h", "2026-12-31T18:00:00Z"])),
]
