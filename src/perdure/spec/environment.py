"""A run's environment, commands and registry login, with every reference resolved that can be."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from perdure.spec.effective import Piece, RegistryAuth, Sealed, SecretRef, Value, joined, pieces_of
from perdure.spec.grammar.env import Supplied
from perdure.spec.interpolation import Named, Reference
from perdure.spec.models.run import RunFields, Task
from perdure.spec.references import Texts

MAX_WORD = 128 * 1024
"""Bytes of one argument or variable, with its end: Linux takes no longer one (MAX_ARG_STRLEN)."""

MAX_ENV = 1024 * 1024
"""Linux takes 2 MiB of arguments and variables together; agents add their own."""

MOST_REFERENCES = 1000
"""In all of a run's variables, and in its login: each is opened on the worker, and travels by itself."""

LOGIN = ("registry_auth.username", "registry_auth.password")

_OF_A_BOX = 48
"""Bytes that a sealed box is longer than what is in it."""


def overriding(run: RunFields, sealed: Mapping[str, str]) -> list[str]:
    """Names of the sealed values that the configuration does not ask for: they were given with ``-e``."""
    asked = {value.key for value in run.env.values() if isinstance(value, Supplied)}
    return [name for name in sealed if name not in asked]


def variables(run: RunFields, texts: Texts, sealed: Mapping[str, str]) -> dict[str, Value]:
    """All that have a value.

    Args:
        texts: of ``run``; those that are wrong are empty here.
        sealed: by name, values that only a worker can open: they stand above those of ``run``.
    """
    env: dict[str, Value] = {}
    for name, value in run.env.items():
        if isinstance(value, str):
            env[name] = joined(_secret(piece) for piece in texts[f"env.{name}"])
        elif value.key in sealed:
            env[name] = Sealed(sealed=sealed[value.key])
    return env | {name: Sealed(sealed=sealed[name]) for name in overriding(run, sealed)}


def size(name: str, value: Value) -> int:
    """Bytes that a process is given for a variable; of a secret, whose value is not known, none."""
    return len(name) + 2 + sum(_size(piece) for piece in pieces_of(value))


def commands(run: Task, texts: Texts, arguments: Sequence[str]) -> tuple[str, ...]:
    """``run.args``, in place of which the arguments stand, is all that a command of a task without groups can refer
    to."""
    given = shlex.join(arguments)
    return tuple(
        "".join(piece if isinstance(piece, str) else given for piece in texts[f"commands[{index}]"])
        for index in range(len(run.commands))
    )


def command_sizes(run: Task, texts: Texts, arguments: Sequence[str]) -> list[int]:
    """Bytes of each of ``commands``, which are not made for that: arguments may be long, and referred to often."""
    given = _size(shlex.join(arguments))
    return [
        sum(_size(piece) if isinstance(piece, str) else given for piece in texts[f"commands[{index}]"])
        for index in range(len(run.commands))
    ]


def login_sizes(texts: Texts, env: Mapping[str, Value]) -> dict[str, int]:
    """Bytes of the registry's username and password, by path, which are not made for that."""
    sizes = {name: size("", value) for name, value in env.items()}

    def part_size(part: str | Reference) -> int:
        if isinstance(part, Named) and part.namespace == "env":
            return sizes.get(part.name, 0)
        return _size(_secret(part))

    return {path: sum(map(part_size, texts[path])) for path in LOGIN}


def registry_auth(run: RunFields, texts: Texts, env: Mapping[str, Value]) -> RegistryAuth | None:
    """Who pulls the image; ``env`` is the run's."""

    def login(path: str) -> Value:
        return joined(piece for part in texts[path] for piece in _login_pieces(part, env))

    if run.registry_auth is None:
        return None
    username, password = map(login, LOGIN)
    return RegistryAuth(username=username, password=password)


def _login_pieces(part: str | Reference, env: Mapping[str, Value]) -> Sequence[Piece]:
    if isinstance(part, Named) and part.namespace == "env":
        return pieces_of(env.get(part.name, ""))
    return (_secret(part),)


def _secret(part: str | Reference) -> Piece:
    """A text; or a reference of the one kind that is known in ``env``."""
    return SecretRef(secret=part.name) if isinstance(part, Named) else str(part)


def _size(piece: Piece) -> int:
    match piece:
        case str():
            return len(piece.encode(errors="replace"))
        case Sealed():
            return max(0, len(piece.sealed) * 3 // 4 - _OF_A_BOX)
        case SecretRef():
            return 0
