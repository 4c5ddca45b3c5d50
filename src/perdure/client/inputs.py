"""What a run takes from the user's machine besides code: environment values, which travel sealed."""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, cast

from perdure.client.seal import seal
from perdure.model.errors import FieldError, InvalidConfiguration, UserError
from perdure.spec.interpolation import BadReference, Named, pieces

LONGEST = 128 * 1024
"""Bytes of ``NAME=value`` and its end: Linux starts no process with a longer one (MAX_ARG_STRLEN)."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def environment(
    configuration: Mapping[str, Any], given: Iterable[str] = (), environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The values to be sealed.

    Args:
        configuration: as the user wrote it. Names that its ``env`` lists without a value (or maps to
            ``{key: NAME}``), and those that its ``registry_auth`` and ``probes`` refer to as ``${{ env.NAME }}``,
            are taken from ``given`` or else ``environ``.
        given: ``NAME=VALUE``, or ``NAME`` to take it from ``environ``.

    Raises:
        UserError: something given is not a name, or is not set.
        InvalidConfiguration: the configuration needs one that is set nowhere; all of them are listed.
    """
    values = dict(_given(item, environ) for item in given)
    missing: list[FieldError] = []
    for path, name in needed(configuration, frozenset(values)):
        if name in values:
            continue
        if name in environ:
            values[name] = environ[name]
        else:
            missing.append(
                FieldError(
                    path=path, message=f"{name} is not set here", hint=f"set it, or give it with -e {name}=VALUE"
                )
            )
    if missing:
        raise InvalidConfiguration(missing)
    for name, value in values.items():
        _check(name, value)
    return values


def sealed(values: Mapping[str, str], public_key: str) -> dict[str, str]:
    """Each value for the worker's eyes alone (``Hello.public_key``)."""
    return {name: seal(public_key, value) for name, value in values.items()}


def _given(item: str, environ: Mapping[str, str]) -> tuple[str, str]:
    name, equals, value = item.partition("=")
    if not _NAME.fullmatch(name):
        raise UserError(
            f"-e {item.split('=')[0]!r} is not the name of a variable", hint="write -e NAME or -e NAME=VALUE"
        )
    if equals:
        return name, value
    if name not in environ:
        raise UserError(f"-e {name}: {name} is not set here", hint=f"set it, or write -e {name}=VALUE")
    return name, environ[name]


def _check(name: str, value: str) -> None:
    if "\0" in value:
        raise UserError(f"{name} has a NUL character, which no process can be given", hint="encode it, as base64")
    try:
        size = len(name) + len(value.encode()) + 2
    except UnicodeEncodeError:
        raise UserError(
            f"{name} is not text: it has bytes that are not UTF-8", hint="encode it, as base64"
        ) from None
    if size > LONGEST:
        raise UserError(
            f"{name} is {size // 1024} KiB, and a process can be given 128 KiB in one variable",
            hint="put it in a file and list it under `files:`",
        )


def above(configuration: Mapping[str, Any], given: Iterable[str]) -> dict[str, Any]:
    """What a run's flags must say of ``given``, as ``env``; mostly nothing, for a value that nobody asks for stands
    above the configuration by itself.

    One that the configuration asks for does not: with ``env: {A: x, B: {key: A}}`` it is that of B alone, unless it
    was given with ``-e A``, and then it is that of both.
    """
    env = configuration.get("env")
    if not isinstance(env, Mapping):
        return {}
    asked = {name for _, name in needed({"env": env})}
    names = dict.fromkeys(item.partition("=")[0] for item in given)
    return {name: {"key": name} for name in names if name in asked and name in env and env[name] != {"key": name}}


def needed(configuration: Mapping[str, Any], given: Container[str] = ()) -> Iterable[tuple[str, str]]:
    """(where it is asked for, name) of the values that the configuration leaves to this machine.

    Args:
        given: variables that have a value, wherever else it would come from.
    """
    env = configuration.get("env")
    known: set[str] = set()
    if isinstance(env, list):
        for index, item in enumerate(env):
            if isinstance(item, str) and _NAME.fullmatch(item):
                yield f"env[{index}]", item
            elif isinstance(item, str):
                known.add(item.partition("=")[0])
    elif isinstance(env, Mapping):
        for name, value in env.items():
            if isinstance(value, Mapping) and isinstance(value.get("key"), str):
                if name not in given:
                    yield f"env.{name}", value["key"]
            else:
                known.add(str(name))
    for field in ("registry_auth", "probes"):
        for path, name in _referred(configuration.get(field), field):
            if name not in known:
                yield path, name


def takes_arguments(configuration: Mapping[str, Any]) -> bool:
    """Whether anything in it refers to ``${{ run.args }}``."""
    return any(str(named) == "run.args" for _, named in _references(configuration, ""))


def _referred(value: object, path: str) -> Iterator[tuple[str, str]]:
    """(where, name) of each ``${{ env.NAME }}`` in the texts of a value."""
    return ((where, named.name) for where, named in _references(value, path) if named.namespace == "env")


def _references(value: object, path: str) -> Iterator[tuple[str, Named]]:
    """(where, what) of each reference in the texts of a value; one that is wrong is told by others."""
    if isinstance(value, Mapping):
        for key, item in cast(Mapping[str, object], value).items():
            yield from _references(item, f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(cast(list[object], value)):
            yield from _references(item, f"{path}[{index}]")
    elif isinstance(value, str):
        with suppress(BadReference):
            for piece in pieces(value):
                if isinstance(piece, Named):
                    yield path, piece
