"""What a configuration asks of machines, in the units that placement works with."""

from __future__ import annotations

from perdure.model.resources import GpuNeed, Requirements, Span
from perdure.spec.checking import check, lines_of
from perdure.spec.grammar.hardware import GpuSpec, ResourcesSpec
from perdure.spec.grammar.ranges import CountRange, MemoryRange
from perdure.spec.models.fleet import FleetConfiguration
from perdure.spec.models.profile import ProfileFields
from perdure.spec.models.run import RunFields
from perdure.spec.parsing import entries_of

MIB = 1024
"""Of one GB, the unit in which users write memory."""

_SPOT = {"spot": True, "auto": None, "on-demand": False}


class Wanted(ProfileFields):
    """What ``perdure offer`` asks for."""

    resources: ResourcesSpec = ResourcesSpec()


def requirements(run: RunFields | Wanted) -> Requirements:
    """What every node needs. ``firm`` holds the names of the resources the user wrote, as they are written
    (``cpu``, ``memory``, ``gpu``, ``disk``, ``shm_size``)."""
    return _hardware(run).but(
        spot=_SPOT[run.spot_policy or "on-demand"],
        fleets=tuple(fleet.name for fleet in run.fleets or ()),
        reuse_only=run.creation_policy == "reuse",
        image=run.image if isinstance(run, RunFields) else None,
    )


def offer_requirements(mapping: object) -> Requirements:
    """What a query for offers asks for: a mapping of ``resources`` and profile fields.

    Raises:
        InvalidConfiguration: with every mistake.
    """
    return requirements(check(Wanted, entries_of(mapping), lines_of(mapping)))


def fleet_requirements(fleet: FleetConfiguration) -> Requirements:
    """What every instance of a fleet must be; of spot and on-demand, either unless it is written."""
    return _hardware(fleet).but(
        spot=_SPOT[fleet.spot_policy or "auto"],
    )


def _hardware(fields: RunFields | Wanted | FleetConfiguration) -> Requirements:
    resources = fields.resources
    return Requirements(
        cpu=_span(resources.cpu.count),
        cpu_arch=resources.cpu.arch,
        memory_mib=_span(resources.memory, MIB),
        disk_mib=None if resources.disk is None else _span(resources.disk.size, MIB),
        gpu=None if resources.gpu is None else _gpu(resources.gpu),
        shm_mib=None if resources.shm_size is None else resources.shm_size * MIB,
        max_price=fields.max_price,
        backends=fields.backends or (),
        regions=fields.regions or (),
        instance_types=fields.instance_types or (),
        firm=_firm(resources),
    )


def _firm(resources: ResourcesSpec) -> tuple[str, ...]:
    return tuple(name for name in ResourcesSpec.model_fields if name in resources.model_fields_set)


def _gpu(gpu: GpuSpec) -> GpuNeed:
    return GpuNeed(
        vendor=gpu.vendor,
        names=gpu.name or (),
        count=_span(gpu.count),
        memory_mib=None if gpu.memory is None else _span(gpu.memory, MIB),
        total_memory_mib=None if gpu.total_memory is None else _span(gpu.total_memory, MIB),
        compute_capability=gpu.compute_capability,
    )


def _span(found: CountRange | MemoryRange, unit: int = 1) -> Span:
    return Span(
        min=None if found.min is None else found.min * unit, max=None if found.max is None else found.max * unit
    )
