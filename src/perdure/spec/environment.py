"""A task's environment, commands and registry login, with every reference resolved that can be."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from perdure.spec.effective import Piece, RegistryAuth, Sealed, SecretRef, Value, joined, pieces_of
from perdure.spec.grammar.env import Supplied
from perdure.spec.interpolation import Named, Reference
from perdure.spec.models.run import Task
from perdure.spec.references import Texts
from perdure.spec.rules.base import Problem

_SUPPLY = "give it with `-e {0}=…`, or set it where you run perdure apply"
_AS_FILE = "put it into a file, and list that under files"

MAX_WORD = 128 * 1024
"""Linux takes no longer argument or variable (MAX_ARG_STRLEN)."""

MAX_ENV = 1024 * 1024
"""Linux takes 2 MiB of arguments and variables together; agents add their own."""


class Resolution:
    """The values, and in ``problems`` what is wrong with any of them.

    Args:
        texts: of ``run``; those that are wrong are told by it, and are empty here.
        sealed: variables by name, whose values only a worker can open: they stand above those of ``run``.
        arguments: stand for ``run.args``.
    """

    def __init__(self, run: Task, texts: Texts, sealed: Mapping[str, str], arguments: Sequence[str]):
        self.problems: list[Problem] = []
        self._texts = texts
        self._arguments = shlex.join(arguments)
        self.env = self._env(run, sealed)
        self._check_sizes()
        self.commands = tuple(self._command(f"commands[{index}]") for index in range(len(run.commands)))
        self.registry_auth = self._registry_auth(run)

    def _env(self, run: Task, sealed: Mapping[str, str]) -> dict[str, Value]:
        env: dict[str, Value] = {}
        for name, value in run.env.items():
            if isinstance(value, str):
                env[name] = joined(_secret(piece) for piece in self._texts[f"env.{name}"])
            elif value.key in sealed:
                env[name] = Sealed(sealed=sealed[value.key])
            else:
                self.problems.append(Problem(f"env.{name}", f"{name} has no value", _SUPPLY.format(value.key)))
        for name, value in sealed.items():
            # An override of something the file gives a value, or does not have at all.
            if not any(isinstance(there, Supplied) and there.key == name for there in run.env.values()):
                env[name] = Sealed(sealed=value)
        return env

    def _check_sizes(self) -> None:
        sizes = {name: len(name) + _bytes(value) + 2 for name, value in self.env.items()}
        for name, size in sizes.items():
            if size > MAX_WORD:
                message = f"{name} is larger than 128 KiB, the most a process can be given"
                self.problems.append(Problem(f"env.{name}", message, _AS_FILE))
        if sum(sizes.values()) > MAX_ENV:
            self.problems.append(Problem("env", "is larger than 1 MiB, the most a process can be given", _AS_FILE))

    def _command(self, path: str) -> str:
        """``run.args`` is all that a command can refer to in a task without groups."""
        return "".join(piece if isinstance(piece, str) else self._arguments for piece in self._texts[path])

    def _registry_auth(self, run: Task) -> RegistryAuth | None:
        if run.registry_auth is None:
            return None
        return RegistryAuth(
            username=self._login("registry_auth.username"), password=self._login("registry_auth.password")
        )

    def _login(self, path: str) -> Value:
        for where, name in self._texts.named("env"):
            if where == path and name not in self.env:
                message = f"refers to env.{name}, which env does not have"
                self.problems.append(Problem(path, message, f"add `- {name}` to env"))
        return joined(piece for part in self._texts[path] for piece in self._login_pieces(part))

    def _login_pieces(self, part: str | Reference) -> Sequence[Piece]:
        if isinstance(part, Named) and part.namespace == "env":
            return pieces_of(self.env.get(part.name, ""))
        return (_secret(part),)


def _secret(part: str | Reference) -> Piece:
    """A text; or a reference of the one kind that is known in ``env``."""
    return SecretRef(secret=part.name) if isinstance(part, Named) else str(part)


def _bytes(value: Value) -> int:
    """The size of the value; of a sealed one from the size of its box (48 bytes of overhead), of a secret none."""
    return sum(
        len(piece.encode(errors="replace"))
        if isinstance(piece, str)
        else max(0, len(piece.sealed) * 3 // 4 - 48)
        if isinstance(piece, Sealed)
        else 0
        for piece in pieces_of(value)
    )
