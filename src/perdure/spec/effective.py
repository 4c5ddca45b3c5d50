"""The effective specification of a run: every value in force, as Postgres keeps it and the agents are told it.

Made once, by ``perdure.spec.resolve``. Holds no secret: a sealed value stays sealed (``Sealed``), and
``${{ secrets.x }}`` stays a reference, until the activity that hands it to an agent.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any, Literal, TypeAlias, cast

from pydantic import Field

from perdure.model.base import Message
from perdure.model.messages import CodeRef
from perdure.model.origins import EffectiveValue
from perdure.model.policy import RunPolicy


class Sealed(Message):
    """A value only a worker can open: base64 of an X25519 sealed box."""

    sealed: str


class SecretRef(Message):
    """A secret of the run's project, by name: ``${{ secrets.x }}``."""

    secret: str


Piece: TypeAlias = str | Sealed | SecretRef
Value: TypeAlias = str | Sealed | tuple[Piece, ...]
"""A text; one that only a worker can open; or pieces of which at least one is no plain text, to be joined once each
is open."""


def joined(pieces: Iterable[Piece]) -> Value:
    """The pieces as one value: a text, if all of them are."""
    kept: list[Piece] = []
    for literal, group in groupby(pieces, lambda piece: isinstance(piece, str)):
        if not literal:
            kept.extend(group)
        elif text := "".join(cast(Iterable[str], group)):
            kept.append(text)
    if len(kept) < 2 and not any(isinstance(piece, SecretRef) for piece in kept):
        return cast(str | Sealed, kept[0]) if kept else ""
    return tuple(kept)


def pieces_of(value: Value) -> tuple[Piece, ...]:
    return value if isinstance(value, tuple) else (value,)


class RegistryAuth(Message):
    username: Value
    password: Value


class Mapping(Message):
    """A port of the job; ``local`` None: any free one on the user's machine."""

    container: int
    local: int | None = None


class InstanceMount(Message):
    instance_path: str
    path: str
    optional: bool = False


class EffectiveRun(Message):
    """One run. Memory and shm in MiB, durations in seconds, None is off or unset."""

    policy: RunPolicy
    type: Literal["task", "service", "dev-environment"] = "task"
    image: str | None = None
    entrypoint: tuple[str, ...] | None = None
    commands: tuple[str, ...] = ()
    """As written, after interpolation; ``argv`` says how they are run."""

    argv: tuple[str, ...] = ()
    """The main process: shell and script, or entrypoint and words. Empty: the image's own."""

    env: dict[str, Value] = Field(default_factory=dict)
    registry_auth: RegistryAuth | None = None
    user: str | None = None
    working_dir: str | None = None
    privileged: bool = False
    shm_mib: float | None = None
    cpu_limit: float | None = None
    memory_limit_mib: float | None = None
    ports: tuple[Mapping, ...] = ()
    mounts: tuple[InstanceMount, ...] = ()
    code: tuple[CodeRef, ...] = ()
    repo_exists_action: Literal["error", "skip"] = "error"
    max_duration: float | None = None
    stop_duration: float | None = 300.0
    tags: dict[str, str] = Field(default_factory=dict)
    configuration: dict[str, Any] = Field(default_factory=dict)
    """What the user wrote."""

    values: tuple[EffectiveValue, ...] = Field(default=(), exclude=True)
    """Every effective value in words, in the order a plan shows them. It is not stored."""


def secrets_of(run: EffectiveRun) -> set[str]:
    """Names of the secrets that its jobs need."""
    auth = run.registry_auth
    values = [*run.env.values(), *((auth.username, auth.password) if auth else ())]
    return {piece.secret for value in values for piece in pieces_of(value) if isinstance(piece, SecretRef)}
