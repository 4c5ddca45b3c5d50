"""References where none is resolved: they would be taken for what they look like, and end up in a job as text."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel

from perdure.spec.grammar.base import is_list, is_mapping
from perdure.spec.rules.base import Problem, Problems, looks_at

_RESOLVED = {
    "env",
    "registry_auth.username",
    "registry_auth.password",
    "commands",
    "init",
    "groups[].commands",
    "replicas[].commands",
    "volumes[].name",
    "probes[].url",
    "probes[].body",
    "probes[].headers[].value",
    "domain",
}
"""What ``references`` reads, and all in it."""

_WRITTEN_SHORT = {
    "files[]",
    "repos[]",
    "volumes[]",
    "fleets[]",
    "instances[]",
    "depends_on[]",
    "ssh_config.hosts[]",
    "gateway",
    "model",
}
"""What may be written as one text, at whose path it is told."""

_MESSAGE = "has a ${{ in it, and no reference is resolved here"
_HINT = "write what it stands for: references are for commands, env, registry_auth, probes and names of volumes"


@looks_at()
def references_are_where_they_are_resolved(configuration: BaseModel) -> Problems:
    for path in dict.fromkeys(_strays(configuration, "", "", "")):
        yield Problem(path, _MESSAGE, _HINT)


def _strays(value: object, path: str, pattern: str, told: str) -> Iterator[str]:
    """
    Args:
        pattern: the path with ``[]`` for each index.
        told: the path that is told; empty: ``path``.
    """
    if pattern in _RESOLVED:
        return
    told = told or (path if pattern in _WRITTEN_SHORT else "")
    if isinstance(value, str):
        if "${{" in value:
            yield told or path
    elif is_list(value):
        for index, item in enumerate(value):
            yield from _strays(item, f"{path}[{index}]", f"{pattern}[]", told)
    else:
        for name, item in _parts(value):
            yield from _strays(item, f"{path}.{name}".strip("."), f"{pattern}.{name}".strip("."), told)


def _parts(value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, BaseModel):
        yield from ((name, getattr(value, name, None)) for name in type(value).model_fields)
    elif is_mapping(value):
        yield from value.items()
