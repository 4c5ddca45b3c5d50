"""What a job asks for, and what an instance offers. Units: memory and disk in MiB, prices in dollars an hour."""

from __future__ import annotations

from perdure.model.base import Message


class Span(Message):
    """A closed range; None is open on that side."""

    min: float | None = None
    max: float | None = None

    def holds(self, value: float) -> bool:
        return (self.min is None or value >= self.min) and (self.max is None or value <= self.max)


class GpuNeed(Message):
    vendor: str | None = None
    names: tuple[str, ...] = ()
    count: Span = Span(min=0)
    memory_mib: Span | None = None
    total_memory_mib: Span | None = None
    compute_capability: tuple[int, int] | None = None


class Requirements(Message):
    """What every node of a replica needs. A value the user wrote is ``firm``; a default is only a preference on
    the local machine and on SSH hosts (``firm`` names the resources that were written, and ``idle_duration``)."""

    cpu: Span = Span(min=2)
    cpu_arch: str | None = None
    memory_mib: Span = Span(min=8 * 1024)
    disk_mib: Span | None = Span(min=100 * 1024)
    gpu: GpuNeed | None = None
    shm_mib: float | None = None
    max_price: float | None = None
    spot: bool | None = False
    """True only spot, False only on-demand, None either."""

    backends: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    instance_types: tuple[str, ...] = ()
    fleets: tuple[str, ...] = ()
    reuse_only: bool = False
    image: str | None = None
    firm: tuple[str, ...] = ()


class Gpu(Message):
    vendor: str = "nvidia"
    name: str = ""
    memory_mib: float = 0
    compute_capability: tuple[int, int] | None = None


class Resources(Message):
    """What one instance has."""

    cpus: int
    cpu_arch: str = "x86"
    memory_mib: float
    disk_mib: float
    gpus: tuple[Gpu, ...] = ()

    def words(self) -> str:
        """``cpu=8 mem=32GB disk=100GB A100:40GB:2``"""
        text = f"cpu={self.cpus} mem={self.memory_mib / 1024:.0f}GB disk={self.disk_mib / 1024:.0f}GB"
        if self.gpus:
            first = self.gpus[0]
            text += f" {first.name or first.vendor}:{first.memory_mib / 1024:.0f}GB:{len(self.gpus)}"
        return text


class Offer(Message):
    """One instance a backend could make."""

    backend: str
    region: str
    instance_type: str
    resources: Resources
    price: float = 0.0
    spot: bool = False
    executors: tuple[str, ...] = ("docker",)
    """How it can run a job: ``docker``, ``process``."""


class OfferFailure(Message):
    """Why one offer, or one existing instance, did not do."""

    offer: str
    """What it was, as shown to the user: ``local cpu=2 mem=23GB``."""

    why: str
    name: str = ""
    """What it is called in a sentence, if that is shorter: ``local-0``."""

    @property
    def words(self) -> str:
        return f"{self.name or self.offer} {self.why}"
