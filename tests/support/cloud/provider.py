"""The truth of a provider: which machines it has, what was asked of it, and what is to go wrong."""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from perdure.model.resources import Offer, Resources
from tests.support.cloud.faults import Fault, Script

BACKEND = "cloud"


def kind(name: str, price: float, *, region: str = "north", spot: bool = False, backend: str = BACKEND) -> Offer:
    """A machine one can buy."""
    return Offer(
        backend=backend,
        region=region,
        instance_type=name,
        resources=Resources(cpus=8, memory_mib=65536, disk_mib=500 * 1024),
        price=price,
        spot=spot,
    )


class State(StrEnum):
    RUNNING = "running"
    STOPPING = "stopping"
    GONE = "gone"
    """Still told of, as clouds do for an hour or so, to who asks for it by its token."""


@dataclass
class Machine:
    """``token`` is the client token it was bought with, and its tag: one token buys one machine."""

    id: str
    token: UUID
    kind: str
    name: str
    installation: UUID
    epoch: int
    secret: str
    born: float
    state: State = State.RUNNING
    address: str | None = None
    unlisted: int = 0
    """Looks for which it does not show yet."""

    boots: bool = True
    """Whether its agents ever answer."""

    says_it_is: UUID | None = None
    """The identity its agents tell, if it is not theirs."""


@dataclass(frozen=True)
class Call:
    name: str
    about: str


@dataclass
class Provider:
    """Faults are scripted by call: ``create`` (about an instance type), ``look`` and ``terminate`` (about a token),
    ``list``."""

    machines: dict[UUID, Machine] = field(default_factory=dict)
    """By token."""

    calls: list[Call] = field(default_factory=list)
    script: Script = field(default_factory=Script)
    hides_new: dict[str, int] = field(default_factory=dict)
    """Looks for which a new machine of such a type does not show."""

    room: int | None = None
    """Machines that it has room for."""

    boots: bool = True
    lingers: int = 0
    """Times that a machine answers ``stopping`` before it is gone."""

    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _later: float = 0.0

    # --- what tests say ---------------------------------------------------------------------------------------

    def once(self, call: str, *faults: Fault, about: str = "") -> None:
        """The next such calls go wrong, each in its way."""
        self.script.once.setdefault(call, deque()).extend((about, fault) for fault in faults)

    def always(self, call: str, fault: Fault, *, about: str = "") -> None:
        self.script.always.setdefault(call, []).append((about, fault))

    def heal(self) -> None:
        """Nothing goes wrong any more."""
        self.script.release()
        self.script = Script()

    def delete(self, token: UUID) -> None:
        """Somebody else ends it, in the provider's console."""
        self.machines[token].state = State.GONE
        self.machines[token].address = None

    def pass_time(self, seconds: float) -> None:
        """Every machine gets older."""
        self._later += seconds

    # --- what tests ask ---------------------------------------------------------------------------------------

    def alive(self) -> list[Machine]:
        """What bills."""
        return [machine for machine in self.machines.values() if machine.state is not State.GONE]

    def at(self, address: str) -> Machine | None:
        return next((machine for machine in self.alive() if machine.address == address), None)

    def asked(self, call: str) -> list[str]:
        """What such calls were about, in order."""
        return [one.about for one in self.calls if one.name == call]

    # --- what callers get -------------------------------------------------------------------------------------

    def create(self, token: UUID, kind: str, name: str, installation: UUID, epoch: int, secret: str) -> Machine:
        """Once for each token."""
        if token not in self.machines:
            self.machines[token] = Machine(
                id=f"m-{next(self._numbers)}",
                token=token,
                kind=kind,
                name=name,
                installation=installation,
                epoch=epoch,
                secret=secret,
                born=self._now(),
                address=self._free_address(),
                unlisted=self.hides_new.get(kind, 0),
                boots=self.boots,
            )
        return self.machines[token]

    def look(self, token: UUID) -> Machine | None:
        found = self.machines.get(token)
        return found if found is not None and self._shows(found) else None

    def all(self) -> Sequence[Machine]:
        return [machine for machine in self.alive() if self._shows(machine)]

    def is_full(self, token: UUID) -> bool:
        """For a new machine."""
        return self.room is not None and token not in self.machines and len(self.alive()) >= self.room

    def age(self, machine: Machine) -> float:
        return self._now() - machine.born

    def terminate(self, token: UUID) -> Machine | None:
        """None: it does not know such a machine, or does not show it yet."""
        machine = self.look(token)
        if machine is None or machine.state is State.GONE:
            return machine
        machine.state = State.STOPPING
        if self.lingers > 0:
            self.lingers -= 1
        else:
            self.delete(token)
        return machine

    def _shows(self, machine: Machine) -> bool:
        if machine.unlisted > 0:
            machine.unlisted -= 1
            return False
        return True

    def _free_address(self) -> str:
        """The lowest: what one machine leaves, the next one gets."""
        taken = {machine.address for machine in self.alive()}
        return next(address for n in itertools.count(1) if (address := f"10.0.0.{n}") not in taken)

    def _now(self) -> float:
        return time.monotonic() + self._later
