"""CPUs, GPUs, disks, and ``resources`` as a whole."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from tests.spec.grammars.said import Grammar, Said, as_is, mapped, meaning, spelt
from tests.spec.grammars.scalars import memory, memory_spans, ranges

VENDORS = {
    "nvidia": ("nvidia", "NVIDIA", "Nvidia"),
    "amd": ("amd", "AMD"),
    "google": ("google", "tpu", "TPU"),
    "intel": ("intel", "Intel"),
    "tenstorrent": ("tenstorrent", "tt", "TT"),
}
_ALIASES = {alias.lower() for aliases in VENDORS.values() for alias in aliases}
_COUNTS = ranges(spelt(st.integers(0, 64), str))
_SPANS = ranges(memory(1, 640).filter(lambda said: isinstance(said.written, str) and said.written[-1].isalpha()))


def cpus(archs: Sequence[str] = ("x86", "arm")) -> Grammar:
    """``4``, ``4..8``, ``arm:8..``, ``8:arm``, ``ARM``, and mappings."""
    archs_known = st.sampled_from(archs)
    count = ranges(spelt(st.integers(0, 256), int, str))

    def with_arch(arch: str, said: Said, swapped: bool) -> Said:
        tokens = [arch, str(said.written)]
        return Said(
            ":".join(reversed(tokens) if swapped else tokens), {"arch": arch.lower(), "count": said.meaning}
        )

    spellings = archs_known.flatmap(lambda arch: st.sampled_from([arch, arch.upper(), arch.title()]))
    return (
        count.map(lambda said: Said(said.written, {"arch": None, "count": said.meaning}))
        | spellings.map(lambda arch: Said(arch, {"arch": arch.lower(), "count": {"min": 2, "max": None}}))
        | st.builds(
            with_arch, spellings, count.filter(lambda said: not isinstance(said.written, dict)), st.booleans()
        )
        | mapped({"count": count}, {"arch": as_is(archs_known)})
    )


def gpu_names() -> st.SearchStrategy[str]:
    """They begin with a letter; a vendor's name is none."""
    made = st.from_regex(r"[A-Za-z][A-Za-z0-9-]{0,9}", fullmatch=True)
    return st.sampled_from(["A100", "H100", "L4", "RTX4090", "v5e-8"]) | made.filter(
        lambda name: name.lower() not in _ALIASES and not name.startswith("tpu-")
    )


def gpus(vendors: Sequence[str] = tuple(VENDORS)) -> Grammar:
    """A count, tokens in any order, a mapping, or null for none."""
    whole = st.integers(0, 64).map(lambda n: Said(n, {"count": {"min": n, "max": n}}))
    return whole | _gpu_text(vendors) | _gpu_mapping(vendors) | meaning(None, None)


def _vendor(vendors: Sequence[str]) -> Grammar:
    return st.sampled_from(vendors).flatmap(lambda vendor: meaning(vendor, *VENDORS[vendor]))


def _names(glue: str) -> Grammar:
    return st.lists(gpu_names(), min_size=1, max_size=3).map(lambda names: Said(glue.join(names), names))


def _gpu_text(vendors: Sequence[str]) -> Grammar:
    tokens = {
        "vendor": _vendor(vendors),
        "name": _names(","),
        "memory": _SPANS.filter(lambda said: isinstance(said.written, str)),
        "count": _COUNTS.filter(lambda said: isinstance(said.written, str)),
    }
    some = st.lists(st.sampled_from(sorted(tokens)), unique=True, min_size=1)
    return some.flatmap(lambda kinds: mapped({kind: tokens[kind] for kind in kinds})).map(
        lambda said: Said(":".join(said.written.values()), {"count": {"min": 1, "max": None}} | said.meaning)
    )


def _gpu_mapping(vendors: Sequence[str]) -> Grammar:
    capabilities = st.tuples(st.integers(0, 12), st.integers(0, 19)).flatmap(
        lambda pair: meaning(list(pair), list(pair), f"{pair[0]}.{pair[1]}")
    )
    return mapped(
        {},
        {
            "vendor": _vendor(vendors),
            "name": _names(",")
            | _names(", ")
            | st.lists(gpu_names(), min_size=1, max_size=3).map(lambda n: Said(n, n)),
            "count": ranges(spelt(st.integers(0, 64), int, str)),
            "memory": memory_spans,
            "total_memory": memory_spans,
            "compute_capability": capabilities,
        },
    ).map(lambda said: Said(said.written, {"count": {"min": 1, "max": None}} | said.meaning))


def disks() -> Grammar:
    """A size is the whole of a disk; null is none."""
    sizes = memory_spans.map(lambda said: Said(said.written, {"size": said.meaning}))
    return sizes | mapped({"size": memory_spans}) | meaning(None, None)


def resources(archs: Sequence[str] = ("x86", "arm"), vendors: Sequence[str] = tuple(VENDORS)) -> Grammar:
    return mapped(
        {},
        {"cpu": cpus(archs), "memory": memory_spans, "shm_size": memory(), "gpu": gpus(vendors), "disk": disks()},
    )
