"""What goes wrong with one call to the provider."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Fault:
    """Of one call. ``status`` and ``message`` are answered in place of the truth; without a status, the truth is.

    ``done``: the call takes effect, whatever is answered. ``held``: nothing is answered before this is set.
    """

    status: int | None = None
    code: str = ""
    message: str = ""
    done: bool = False
    held: asyncio.Event | None = None


def full() -> Fault:
    return Fault(409, "no-capacity", "there is no such machine left")


def quota() -> Fault:
    return Fault(403, "quota", "the quota of 0 machines is used up")


def invalid(message: str = "the region is not enabled") -> Fault:
    return Fault(400, "invalid", message)


def throttled() -> Fault:
    return Fault(429, "throttled", "slow down")


def breaks(*, done: bool = False) -> Fault:
    """An internal error, which says nothing about whether it was ``done``."""
    return Fault(500, "internal", "something broke", done=done)


def hangs(*, done: bool = False) -> Fault:
    """No answer, ever: the caller gives up."""
    return Fault(500, "internal", "nobody hears this", done=done, held=asyncio.Event())


def held(until: asyncio.Event) -> Fault:
    """The truth, and the effect, once this is set."""
    return Fault(held=until)


@dataclass
class Script:
    """The faults of each kind of call: those said once, in order, then those that hold from now on."""

    once: dict[str, deque[tuple[str, Fault]]] = field(default_factory=dict)
    always: dict[str, list[tuple[str, Fault]]] = field(default_factory=dict)

    _held: list[asyncio.Event] = field(default_factory=list)

    def take(self, call: str, about: str) -> Fault | None:
        """The fault of this call, if it is to have one. ``about`` is what it is on: an instance type, a token."""
        fault = self._next(call, about)
        if fault is not None and fault.held is not None:
            self._held.append(fault.held)
        return fault

    def release(self) -> None:
        """Let every call that is held go on."""
        for held_call in self._held:
            held_call.set()

    def _next(self, call: str, about: str) -> Fault | None:
        coming = self.once.get(call, deque())
        for place, (only, fault) in enumerate(coming):
            if only in ("", about):
                del coming[place]
                return fault
        return next((fault for only, fault in self.always.get(call, []) if only in ("", about)), None)
