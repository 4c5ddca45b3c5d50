"""What a configuration asks of machines, in the units that placement works with."""

from __future__ import annotations

from perdure.model.resources import GpuNeed, Requirements, Span
from perdure.spec.checking import check, lines_of
from perdure.spec.gpus import vendor_of
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
    (``cpu``, ``memory``, ``gpu``, ``disk``, ``shm_size``), and ``idle_duration`` if they wrote that."""
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


def resources_of(fields: RunFields | Wanted | FleetConfiguration) -> ResourcesSpec:
    """What is asked of the hardware, with the GPU's vendor where it can be told: by its names; and NVIDIA without
    any, if the run has no image of its own, since the default one is made for NVIDIA."""
    gpu = fields.resources.gpu
    if gpu is None or gpu.vendor is not None:
        return fields.resources
    vendor = vendor_of(gpu.name or ())
    if not gpu.name and isinstance(fields, RunFields) and fields.image is None and not fields.docker:
        vendor = "nvidia"
    return fields.resources.model_copy(update={"gpu": gpu.model_copy(update={"vendor": vendor})})


def _hardware(fields: RunFields | Wanted | FleetConfiguration) -> Requirements:
    resources = resources_of(fields)
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
        firm=_firm(fields),
    )


def _firm(fields: RunFields | Wanted | FleetConfiguration) -> tuple[str, ...]:
    written = tuple(name for name in ResourcesSpec.model_fields if name in fields.resources.model_fields_set)
    return written if fields.idle_duration is None else (*written, "idle_duration")


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
