"""What a machine must have: ``resources`` with its cpu, gpu and disk shorthands."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from perdure.spec.grammar.base import Written, is_list, is_mapping, text, told, wrong
from perdure.spec.grammar.forms import Short, any_case, ends, one_or_more, or_null, scalar
from perdure.spec.grammar.ranges import (
    COUNT_END,
    MEMORY,
    MEMORY_END,
    Count,
    CountRange,
    Memory,
    MemoryRange,
    MemorySpan,
)

VENDORS = {
    "nvidia": "nvidia",
    "amd": "amd",
    "google": "google",
    "tpu": "google",
    "intel": "intel",
    "tenstorrent": "tenstorrent",
    "tt": "tenstorrent",
}
OLD_PREFIX = "tpu-"
"""Of names, as they once were written."""

_COUNT = re.compile(r"[0-9_]+|[0-9_]* *\.\. *[0-9_]*")
_CPU_HINT = "write 4, 4..8 or arm:8.."
_GPU_HINT = "write 1, A100, A100:2, A100:40GB:2 or nvidia:24GB..:1..4"
_ARCH = any_case("x86", "arm")
_CPU = scalar(
    "number of CPUs, with an architecture",
    "integer",
    "string",
    pattern=rf"\s*(({_ARCH})\s*:?\s*)?([0-9_]+|[0-9_]* *\.\. *[0-9_]*)?(\s*:\s*({_ARCH}))?\s*",
    hint=_CPU_HINT,
    examples=[4, "8..", "arm:8.."],
) | {"minimum": 0}
_GPU = scalar(
    "GPU",
    "integer",
    "string",
    "null",
    pattern=r"\s*[^:\s][^:]*(:[^:]+){0,3}",
    hint=_GPU_HINT,
    examples=["A100", "A100:40GB:2", "nvidia:24GB..:1..4"],
)


def read_cpu(value: object) -> object:
    """``4``, ``4..8``, ``arm:8..``, ``8:arm`` as a mapping."""
    if isinstance(value, CpuSpec):
        return value
    if is_mapping(value):
        return {"count": value} if value and set(value) <= {"min", "max"} else value
    if isinstance(value, str):
        found: dict[str, object] = {}
        for token in value.split(":"):
            token = token.strip()
            kind = "arch" if token.lower() in ("x86", "arm") else "count"
            if kind in found:
                hint = "a range is written 4..8" if kind == "count" else _CPU_HINT
                raise wrong(f"has two {'counts' if kind == 'count' else 'architectures'}: {told(value)}", hint)
            if kind == "count" and (not token or not _COUNT.fullmatch(token)):
                raise wrong(f"is not a number of CPUs: {told(value)}", _CPU_HINT)
            found[kind] = token.lower() if kind == "arch" else token
        return found
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong(f"is not a number of CPUs: {told(value)}", _CPU_HINT)
    return {"count": value}


def read_gpu(value: object) -> object:
    """Tokens in any order, each kind at most once, as a mapping: vendor, names, memory, count."""
    if isinstance(value, GpuSpec):
        return value
    if value is None or is_mapping(value):
        return value
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise wrong(f"is not a GPU: {told(value)}", _GPU_HINT)
    found: dict[str, object] = {}
    for token in str(value).split(":"):
        kind, meaning = _gpu_token(token.strip(), value)
        if kind in found:
            hint = "a range is written 1..2" if kind == "count" else _GPU_HINT
            raise wrong(f"says its {kind} twice: {told(value)}", hint)
        found[kind] = meaning
    return found


def _gpu_token(token: str, whole_value: object) -> tuple[str, object]:
    if not token:
        raise wrong(f"has an empty part: {told(whole_value)}", _GPU_HINT)
    if token.lower() in VENDORS:
        return "vendor", token
    if token[0].isalpha():
        return "name", token
    if _COUNT.fullmatch(token):
        return "count", token
    if token[0] in ".0123456789" and any(letter.isalpha() for letter in token):
        return "memory", token
    raise wrong(f"has a part that is neither a vendor, a name, memory nor a count: {told(token)}", _GPU_HINT)


def read_vendor(value: object) -> object:
    if isinstance(value, str) and value.lower() in VENDORS:
        return VENDORS[value.lower()]
    if value is None:
        return None
    raise wrong(f"is not a vendor we know: {told(value)}", f"one of {', '.join(sorted(set(VENDORS.values())))}")


def gpu_names(value: object) -> object:
    """One name or several, as a list, also with commas between."""
    if value is None:
        return None
    names = [text(item) for item in value] if is_list(value) else text(value).split(",")
    names = [name.strip() for name in names]
    names = [name.removeprefix(OLD_PREFIX) for name in names]
    if not names or not all(names):
        raise wrong(f"has an empty name: {told(value)}", "write A100 or A100,H100")
    return tuple(names)


def with_old_prefix(gpu: object) -> list[str]:
    """Names in a GPU, as written in any of its forms, that begin in the old way."""
    return [name for name in names_in(gpu) if name.startswith(OLD_PREFIX)]


def names_in(gpu: object) -> list[str]:
    """Names in a GPU, as written in any of its forms."""
    names = gpu.get("name") if is_mapping(gpu) else gpu
    texts = names if is_list(names) else re.split("[:,]", names) if isinstance(names, str) else ()
    found = [name.strip() for name in texts if isinstance(name, str)]
    return [name for name in found if name[:1].isalpha() and name.lower() not in VENDORS]


def read_compute_capability(value: object) -> object:
    """``8.0``, ``"8.9"`` or ``[7, 5]``."""
    if value is None:
        return None
    parts = [text(part) for part in (value if is_list(value) else text(value).split("."))]
    if len(parts) != 2 or not all(re.fullmatch("[0-9]{1,3}", part) for part in parts):
        raise wrong(f"is not a compute capability: {told(value)}", "write 8.0 or [8, 0]")
    return (int(parts[0]), int(parts[1]))


def read_disk(value: object) -> object:
    """A size is the whole of a disk."""
    if value is None or isinstance(value, DiskSpec):
        return value
    if is_mapping(value):
        return {"size": value} if value and set(value) <= {"min", "max"} else value
    return {"size": value}


_VENDOR = scalar("vendor", "string", "null", pattern=any_case(*VENDORS), examples=["nvidia", "amd", "google"])
_NAMES = or_null(one_or_more(scalar("name of a GPU", "string", "number", examples=["A100", "H100,A100"])))
_CAPABILITY = or_null(
    {
        "title": "compute capability",
        "anyOf": [
            scalar("version", "number", "string", pattern=r"[0-9]+\.[0-9]+", examples=["8.0"]),
            {"type": "array", "items": scalar("whole number", "integer", "string"), "minItems": 2, "maxItems": 2},
        ],
    }
)


class CpuSpec(Written):
    """CPUs of a machine."""

    arch: Literal["x86", "arm"] | None = None
    """Unset: any that the image runs on."""

    count: Count = CountRange(min=2)
    """How many."""


class GpuSpec(Written):
    """GPUs of a machine."""

    vendor: Annotated[str | None, BeforeValidator(read_vendor), WithJsonSchema(_VENDOR)] = None
    """Who makes it."""

    name: Annotated[tuple[str, ...] | None, BeforeValidator(gpu_names), WithJsonSchema(_NAMES)] = None
    """One of several is enough."""

    count: Count = CountRange(min=1)
    """How many."""

    memory: MemorySpan | None = None
    """Of one GPU."""

    total_memory: MemorySpan | None = None
    """Of all its GPUs together."""

    compute_capability: Annotated[
        tuple[int, int] | None, BeforeValidator(read_compute_capability), WithJsonSchema(_CAPABILITY)
    ] = None
    """At least this one, of NVIDIA's."""


class DiskSpec(Written):
    """Disk of a machine."""

    size: MemorySpan
    """Of the whole disk."""


class ResourcesSpec(Written):
    """What every machine of a run must have. What is not written is required on clouds only."""

    cpu: Annotated[CpuSpec, BeforeValidator(read_cpu), Short(_CPU, ends(COUNT_END))] = CpuSpec()
    """Cores; ``2..`` if unset."""

    memory: MemorySpan = MemoryRange(min=8)
    """Of the machine; ``8GB..`` if unset."""

    shm_size: Memory | None = None
    """Shared memory of the container."""

    gpu: Annotated[
        GpuSpec | None,
        BeforeValidator(read_gpu),
        Short(_GPU),
    ] = Field(default=None)
    """Names, memory, count and vendor, each at most once, in any order. Unset: with a GPU or without."""

    disk: Annotated[
        DiskSpec | None,
        BeforeValidator(read_disk),
        Short(MEMORY | {"type": ["number", "string", "null"]}, ends(MEMORY_END)),
    ] = DiskSpec(size=MemoryRange(min=100))
    """Of the machine; ``100GB..`` if unset. null: any."""
