"""Does an offer, or an instance that exists, do for what a job asks? The one answer for plans and placement."""

from __future__ import annotations

from collections.abc import Callable

from perdure.model.resources import GpuNeed, Offer, Requirements, Resources, Span

LENIENT = frozenset({"local", "ssh"})
"""Backends whose machines are the user's own: what was not written is a preference there, not a requirement."""

ALIASES = {"remote": "ssh"}
"""Names that a configuration may say for a backend."""


def why_not(wants: Requirements, offer: Offer, *, blocks: int = 1, of: int = 1) -> str | None:
    """Why ``blocks`` of the ``of`` equal parts of this offer do not do; None: they do."""
    return _wrong_kind(wants, offer) or _too_little(wants, offer, share(offer.resources, blocks, of))


def blocks_needed(wants: Requirements, offer: Offer, of: int) -> int | None:
    """The fewest of an instance's ``of`` blocks that do; None: not even all of them."""
    return next((count for count in range(1, of + 1) if why_not(wants, offer, blocks=count, of=of) is None), None)


def share(resources: Resources, blocks: int, of: int) -> Resources:
    """What a job with ``blocks`` of ``of`` gets. The disk is not divided."""
    if blocks == of:
        return resources
    return resources.but(
        cpus=resources.cpus * blocks // of,
        memory_mib=resources.memory_mib * blocks // of,
        gpus=resources.gpus[: len(resources.gpus) * blocks // of],
    )


def words(offer: Offer) -> str:
    """An offer as a user is shown it: ``local cpu=2 mem=23GB disk=70GB``."""
    return f"{short_words(offer)} {offer.resources.words()}{' spot' if offer.spot else ''}"


def short_words(offer: Offer) -> str:
    """``local``, ``aws eu-west-1 p4d.24xlarge``: without what it has."""
    where = f"{offer.backend} {offer.region}" if offer.region not in ("", offer.backend) else offer.backend
    kind = f" {offer.instance_type}" if offer.instance_type not in ("", offer.backend) else ""
    return where + kind


def _wrong_kind(wants: Requirements, offer: Offer) -> str | None:
    backends = {ALIASES.get(name, name) for name in wants.backends}
    if backends and offer.backend not in backends:
        return f"backend is {offer.backend}, wanted {_any_of(wants.backends)}"
    if wants.regions and not _is_named(offer.region, wants.regions):
        return f"region is {offer.region or 'not known'}, wanted {_any_of(wants.regions)}"
    if wants.instance_types and not _is_named(offer.instance_type, wants.instance_types):
        return f"instance type is {offer.instance_type}, wanted {_any_of(wants.instance_types)}"
    if wants.spot is not None and wants.spot != offer.spot:
        return "is spot, wanted on-demand" if offer.spot else "is on-demand, wanted spot"
    if wants.max_price is not None and offer.price > wants.max_price:
        return f"costs ${offer.price:g}/h, max_price is ${wants.max_price:g}/h"
    if wants.image is not None and "docker" not in offer.executors:
        return f"has no container engine, and the image {wants.image} needs one"
    return None


def _is_named(name: str, names: tuple[str, ...]) -> bool:
    """In any case: providers write theirs in several."""
    return name.lower() in {one.lower() for one in names}


def _too_little(wants: Requirements, offer: Offer, has: Resources) -> str | None:
    strict = offer.backend not in LENIENT

    def asked(field: str) -> bool:
        return strict or field in wants.firm

    if wants.cpu_arch is not None and asked("cpu") and wants.cpu_arch != has.cpu_arch:
        return f"CPU is {has.cpu_arch}, wanted {wants.cpu_arch}"
    if asked("cpu") and not wants.cpu.holds(has.cpus):
        return f"has {has.cpus} CPU{_s(has.cpus)}, wanted {_span(wants.cpu, has.cpus)}"
    if asked("memory") and not wants.memory_mib.holds(has.memory_mib):
        return f"has {_size(has.memory_mib)} of memory, wanted {_span(wants.memory_mib, has.memory_mib, _size)}"
    if wants.disk_mib is not None and asked("disk") and not wants.disk_mib.holds(has.disk_mib):
        return f"has {_size(has.disk_mib)} of disk, wanted {_span(wants.disk_mib, has.disk_mib, _size)}"
    if wants.gpu is not None and asked("gpu"):
        return _wrong_gpus(wants.gpu, has)
    return None


def _wrong_gpus(need: GpuNeed, has: Resources) -> str | None:
    """A user who writes one GPU does not want eight: the count is a range like every other."""
    if not need.count.holds(len(has.gpus)):
        return f"has {len(has.gpus) or 'no'} GPU{_s(len(has.gpus))}, wanted {_span(need.count, len(has.gpus))}"
    names = {name.lower() for name in need.names}
    for gpu in has.gpus:
        if need.vendor is not None and gpu.vendor.lower() != need.vendor.lower():
            return f"GPU is of {gpu.vendor}, wanted {need.vendor}"
        if names and gpu.name.lower() not in names:
            return f"GPU is {gpu.name or 'not known'}, wanted {_any_of(need.names)}"
        if need.memory_mib is not None and not need.memory_mib.holds(gpu.memory_mib):
            return f"GPU has {_size(gpu.memory_mib)}, wanted {_span(need.memory_mib, gpu.memory_mib, _size)}"
        if need.compute_capability is not None and (gpu.compute_capability or (0, 0)) < need.compute_capability:
            has_it = ".".join(map(str, gpu.compute_capability)) if gpu.compute_capability else "not known"
            return f"compute capability is {has_it}, wanted {'.'.join(map(str, need.compute_capability))}"
    total = sum(gpu.memory_mib for gpu in has.gpus)
    if need.total_memory_mib is not None and has.gpus and not need.total_memory_mib.holds(total):
        return f"GPUs have {_size(total)} in all, wanted {_span(need.total_memory_mib, total, _size)}"
    return None


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def _any_of(names: tuple[str, ...]) -> str:
    return " or ".join(names)


def _size(mib: float) -> str:
    return f"{mib:g}MB" if mib < 1024 else f"{mib / 1024:.4g}GB"


def _span(span: Span, has: float, show: Callable[[float], str] = "{:g}".format) -> str:
    """``64..``, ``2..4``, ``8``; of a lone value also what to write, for who has more and did not mean so much."""
    least = "" if span.min is None else show(span.min)
    most = "" if span.max is None else show(span.max)
    if least != most:
        return f"{least}..{most}"
    more = span.max is not None and has > span.max
    return f"exactly {least} (`{least}..` is at least that)" if more else least
