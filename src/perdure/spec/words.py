"""Any value of a configuration in words, short enough for a line."""

from __future__ import annotations

import re
from datetime import datetime
from typing import cast

from pydantic import BaseModel

from perdure.model.durations import in_words
from perdure.spec.grammar.base import is_list, is_mapping, without_login
from perdure.spec.grammar.env import Supplied
from perdure.spec.grammar.fleets import FleetNodes
from perdure.spec.grammar.hardware import CpuSpec, DiskSpec, GpuSpec, ResourcesSpec
from perdure.spec.grammar.mounts import FileMapping, HostMount, NetworkMount, RepoSpec
from perdure.spec.grammar.names import Reference
from perdure.spec.grammar.ports import PortMapping
from perdure.spec.grammar.ranges import CountRange, MemoryRange
from perdure.spec.grammar.retry import ALL_RETRY_EVENTS, RetrySpec
from perdure.spec.interpolation import BadReference, Named, pieces
from perdure.spec.models.run import RegistryAuthSpec

UNSET = "-"
"""Of what does not apply where nobody asks for it."""

_LONGEST = 200
_DURATION = re.compile(r"(.*_)?(duration|delay|grace|window|timeout|interval|deadline|backoff)")
_COMMANDS = ("commands", "init", "setup")


def words(path: str, value: object) -> str:
    """Of the field at ``path``, which says what a bare number is."""
    if path.startswith("env.") and isinstance(value, str | Supplied):
        said = _variable(value)
    else:
        said = without_login(_words(path.rpartition(".")[2], value))
    return said if len(said) <= _LONGEST else said[: _LONGEST - 1] + "…"


def resources_words(resources: ResourcesSpec) -> str:
    """``cpu=x86:4.. mem=16GB.. disk=100GB.. gpu=A100:40GB:2``"""
    found = [f"cpu={_of_model('cpu', resources.cpu)}", f"mem={resources.memory.words()}"]
    found += [f"disk={resources.disk.size.words()}"] if resources.disk is not None else []
    found += [f"gpu={_gpu(resources.gpu)}"] if resources.gpu is not None else []
    found += [f"shm={resources.shm_size:g}GB"] if resources.shm_size is not None else []
    return " ".join(found)


def _words(name: str, value: object) -> str:
    match value:
        case None:
            return UNSET
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return _number(name, value)
        case str():
            return value
        case datetime():
            return value.isoformat()
        case BaseModel():
            return _of_model(name, value)
        case _ if is_mapping(value):
            return _of_mapping(name, value)
        case _ if is_list(value):
            return _of_list(name, value)
        case _:
            return str(value)


def _number(name: str, value: float) -> str:
    if _DURATION.fullmatch(name):
        return in_words(value)
    unit = {"max_price": "/h", "max_cost": ""}.get(name)
    if unit is not None:
        return f"${value:g}{unit}"
    number = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{number}GB" if name in ("shm_size", "size") else number


def _of_list(name: str, items: list[object] | tuple[object, ...]) -> str:
    if name in _COMMANDS and items:
        return f"{len(items)} command{'s' if len(items) > 1 else ''}"
    if name == "notify":
        return f"{len(items)} address{'es' if len(items) > 1 else ''}"
    if name == "on_exit_codes":
        pairs = cast(list[tuple[int, int]], items)
        return ", ".join(str(low) if low == high else f"{low}..{high}" for low, high in pairs)
    if name == "compute_capability":
        return ".".join(str(item) for item in items)
    return ", ".join(_words(name, item) for item in items) or UNSET


def _of_mapping(name: str, value: dict[str, object]) -> str:
    if name == "env":
        return ", ".join(value) or UNSET
    return ", ".join(f"{key}={_words(key, item)}" for key, item in value.items()) or UNSET


def _of_model(name: str, value: BaseModel) -> str:
    match value:
        case ResourcesSpec():
            return resources_words(value)
        case CpuSpec():
            return f"{value.arch}:{value.count.words()}" if value.arch else value.count.words()
        case GpuSpec():
            return _gpu(value)
        case DiskSpec():
            return value.size.words()
        case CountRange() | MemoryRange() | FleetNodes() | Reference():
            return value.words()
        case RetrySpec():
            return _retry(value)
        case PortMapping():
            return f"{value.local_port or '*'}:{value.container_port}"
        case HostMount():
            return f"{value.instance_path}:{value.path}"
        case NetworkMount():
            return f"{value.name if isinstance(value.name, str) else '|'.join(value.name)}:{value.path}"
        case FileMapping():
            return f"{value.local_path}:{value.path}"
        case RepoSpec():
            return value.local_path or value.url or UNSET
        case RegistryAuthSpec():
            return f"as {value.username}"
        case _:
            kept = {key: getattr(value, key) for key in type(value).model_fields if key in value.model_fields_set}
            return ", ".join(f"{key}={_words(key, item)}" for key, item in kept.items() if item is not None)


def _gpu(gpu: GpuSpec) -> str:
    parts = [gpu.vendor or "", ",".join(gpu.name or ())]
    parts += [gpu.memory.words()] if gpu.memory is not None else []
    parts.append(gpu.count.words())
    parts += [f"total {gpu.total_memory.words()}"] if gpu.total_memory is not None else []
    parts += ["compute {}.{}".format(*gpu.compute_capability)] if gpu.compute_capability is not None else []
    return ":".join(part for part in parts if part)


def _retry(retry: RetrySpec) -> str:
    window = in_words(3600 if retry.duration is None else retry.duration)
    said = f"{', '.join(retry.on_events or ALL_RETRY_EVENTS)} for {window}"
    return said if retry.max_attempts is None else f"{said}, at most {retry.max_attempts} attempts in all"


def _variable(value: str | Supplied) -> str:
    """Where the value of a variable comes from, and not what it is."""
    if isinstance(value, Supplied):
        return f"{value.key} of your environment"
    try:
        named = [str(piece) for piece in pieces(value) if isinstance(piece, Named)]
    except BadReference:
        named = []
    return f"from {', '.join(named)}" if named else "a text" if value else "empty"
