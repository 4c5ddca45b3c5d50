"""Flags over configuration over profile: one mapping, and of every value where it is written.

One rule for every field: the first of flags, configuration and profile that says something decides; below them
come the fleet and the default. Unset says nothing: a field that is left out or null, and a duration that is
``true``. Off and false do say something, so ``retry: false`` holds against a profile that retries.

Decided by parts are ``resources`` (cpu, memory, gpu, disk and shm_size each), ``env`` and ``tags`` (each name), and
``retry`` where flags give no more than a duration: it is that of the retrying below. All else is decided whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from perdure.model.errors import FieldError
from perdure.model.origins import Layer, Origin
from perdure.spec.grammar.base import is_list, is_mapping

_BY_PARTS = ("resources", "env", "tags")

_FLAGS = {
    "resources.cpu": "--cpu",
    "resources.memory": "--memory",
    "resources.gpu": "--gpu",
    "resources.disk": "--disk",
    "retry.duration": "--retry-duration",
    "backends": "--backend",
    "regions": "--region",
    "instance_types": "--instance-type",
    "fleets": "--fleet",
    "ports": "--port",
    "env": "-e",
}
"""Flags that are not called as their field is."""

Parsed = TypeVar("Parsed", bound=BaseModel, covariant=True)


@dataclass(frozen=True)
class Part(Generic[Parsed]):
    """One layer: what it says, as written and as parsed."""

    layer: Layer
    written: Mapping[str, Any]
    parsed: Parsed
    name: str = ""
    """Of a profile."""

    def within(self, model: type[BaseModel]) -> Part[Parsed]:
        """What of it may stand above or below a configuration of this kind."""
        if self.layer == "configuration":
            return self
        own = ("type",) if self.layer == "flag" else ("name",)
        return replace(
            self,
            written={key: it for key, it in self.written.items() if key in model.model_fields and key not in own},
        )

    def says(self, name: str) -> bool:
        return name in self.written and getattr(self.parsed, name, None) is not None

    def origin(self, path: str) -> Origin:
        """Of the value that this layer has at ``path``."""
        name = flag_of(path) if self.layer == "flag" else self.name
        return Origin(layer=self.layer, name=name, path=path)


@dataclass
class Layered:
    """All layers in one."""

    mapping: dict[str, Any]
    """A configuration, as if all of it were written in one place."""

    origins: dict[str, Origin] = field(default_factory=dict[str, Origin])
    """By path in ``mapping``; variables as ``env.NAME``, however they are written."""

    def origin(self, path: str) -> Origin:
        """Where the value at ``path`` is written, if not by itself then in what is around it; else a default."""
        outer = path
        while outer:
            if outer in self.origins:
                found = self.origins[outer]
                return found.but(path=found.path + path[len(outer) :])
            outer = _around(outer)
        return Origin()

    def overridden(self, name: str, parts: Iterable[str]) -> Layered:
        """The same, with parts of a field that flags give by themselves."""
        flags = {
            f"{name}.{part}": Origin(layer="flag", name=flag_of(name), path=f"{name}.{part}") for part in parts
        }
        whole = {name: Origin(layer="flag", name=flag_of(name), path=name)} if flags else {}
        return Layered(self.mapping, whole | self.origins | flags)

    def placed(self, error: FieldError) -> FieldError:
        """An error of a value in ``mapping``, as one of the layer in which that is written."""
        found = self.origin(error.path)
        if found.layer == "default":
            return error
        return error.but(path=found.path, layer=found.layer)


def merge(
    configuration: Part[BaseModel], flags: Part[BaseModel] | None = None, profile: Part[BaseModel] | None = None
) -> Layered:
    """All layers in one; each has been parsed, so what it says is right by itself."""
    kind = type(configuration.parsed)
    layers = [part.within(kind) for part in (flags, configuration, profile) if part is not None]
    merged = Layered({})
    for name in {name: None for part in (configuration, *layers) for name in part.written}:
        saying = [part for part in layers if part.says(name)]
        if not saying:
            # Unset, in whatever words: it stays as it is, for they may tell a reader something.
            merged.mapping[name] = configuration.written.get(name)
        elif name in _BY_PARTS:
            _merge_parts(merged, name, saying)
        elif name == "retry" and saying[0].layer == "flag":
            _merge_retry(merged, saying)
        else:
            _take(merged, name, saying[0])
    return merged


def flag_of(path: str) -> str:
    """The flag that says what the configuration says at ``path``: ``--gpu`` for ``resources.gpu``."""
    while path not in _FLAGS and _around(path):
        path = _around(path)
    return _FLAGS.get(path, f"--{path.replace('_', '-')}")


def written_path(path: str, written: object) -> str:
    """Of a path in what is parsed: ``env[2]`` for ``env.NAME``, if variables are written as a list."""
    env: object = written.get("env") if is_mapping(written) else None
    name = path.removeprefix("env.")
    if name == path or not is_list(env):
        return path
    return next((f"env[{index}]" for index, item in enumerate(env) if str(item).partition("=")[0] == name), path)


def _around(path: str) -> str:
    """The path of what holds the value at ``path``; empty for the whole."""
    return path[: max(path.rfind("."), path.rfind("["), 0)]


def _inside(path: str, outer: str) -> bool:
    return path.startswith((f"{outer}.", f"{outer}["))


def _take(merged: Layered, name: str, part: Part[BaseModel]) -> None:
    written: object = part.written[name]
    merged.mapping[name] = written
    merged.origins[name] = part.origin(name)
    if name == "retry" and is_mapping(written):
        merged.origins |= {f"retry.{key}": part.origin(f"retry.{key}") for key in written}


def _merge_parts(merged: Layered, name: str, saying: Sequence[Part[BaseModel]]) -> None:
    """Each part from the first layer that says something about it."""
    whole: dict[str, Any] = {}
    for part in saying:
        for key, (value, path) in _parts(part, name).items():
            if key not in whole:
                whole[key] = value
                merged.origins[f"{name}.{key}"] = part.origin(path)
    merged.mapping[name] = whole if len(saying) > 1 else saying[0].written[name]
    flags = ", ".join(
        one.name for one in merged.origins.values() if one.layer == "flag" and _inside(one.path, name)
    )
    origin = saying[0].origin(name)
    merged.origins[name] = origin.but(name=flags) if origin.layer == "flag" else origin


def _parts(part: Part[BaseModel], name: str) -> Mapping[str, tuple[Any, str]]:
    """Each part by its name, with its value and where in the layer it is written."""
    written: object = part.written[name]
    if name == "env" and is_list(written):
        items = [(index, str(item).partition("=")) for index, item in enumerate(written)]
        return {key: (value if eq else {"key": key}, f"env[{index}]") for index, (key, eq, value) in items}
    if not is_mapping(written):
        return {}
    return {
        key: (value, f"{name}.{key}")
        for key, value in written.items()
        if value is not None or part.layer == "configuration"  # `gpu: null` there: none is asked for
    }


def _merge_retry(merged: Layered, saying: Sequence[Part[BaseModel]]) -> None:
    """No more than a duration, from flags, is that of the retrying below."""
    _take(merged, "retry", saying[0])
    written: object = saying[0].written["retry"]
    if not is_mapping(written) or set(written) != {"duration"}:
        return
    under: object = saying[1].written["retry"] if len(saying) > 1 else None
    if is_mapping(under):
        merged.mapping["retry"] = {**under, **written}
        merged.origins |= {f"retry.{key}": saying[1].origin(f"retry.{key}") for key in under.keys() - {"duration"}}
