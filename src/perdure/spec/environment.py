"""A task's environment, commands and registry login, with every reference resolved."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from perdure.spec.effective import RegistryAuth, Sealed, Value
from perdure.spec.grammar.base import is_list, is_mapping
from perdure.spec.grammar.env import Supplied
from perdure.spec.interpolation import BadReference, interpolate
from perdure.spec.models.run import Task

_Lookup: TypeAlias = Callable[[str, str], "str | Sealed"]

_NO_SECRETS = "secrets are not supported yet"
_SUPPLY = "give it with `-e {0}=…`, or set it where you run perdure apply"


_AS_FILE = "put it into a file, and list that under files"

MAX_WORD = 128 * 1024
"""Linux takes no longer argument or variable (MAX_ARG_STRLEN)."""

MAX_ENV = 1024 * 1024
"""Linux takes 2 MiB of arguments and variables together; agents add their own."""


def _bytes(value: str | Sealed) -> int:
    """The size of the value, for a sealed one from the size of its box (48 bytes of overhead)."""
    return (
        len(value.encode(errors="replace")) if isinstance(value, str) else max(0, len(value.sealed) * 3 // 4 - 48)
    )


def _env_paths(env: object) -> dict[str, str]:
    """Where each variable is written."""
    if is_list(env):
        return {str(item).partition("=")[0]: f"env[{index}]" for index, item in enumerate(env)}
    return {name: f"env.{name}" for name in env} if is_mapping(env) else {}


class Resolution:
    """The values, and in ``errors`` (path, message, hint) what is wrong with any of them."""

    def __init__(
        self, run: Task, written: Mapping[str, object], sealed: Mapping[str, str], arguments: Sequence[str]
    ):
        self.errors: list[tuple[str, str, str | None]] = []
        self._env_paths = _env_paths(written.get("env"))
        self._arguments = shlex.join(arguments)
        self.env: dict[str, Value] = self._env(run, sealed)
        self.commands = tuple(
            self._plain(f"commands[{index}]", command, self._in_command)
            for index, command in enumerate(run.commands)
        )
        self.registry_auth = self._registry_auth(run)

    def _env(self, run: Task, sealed: Mapping[str, str]) -> dict[str, Value]:
        env: dict[str, str | Sealed] = {}
        for name, value in run.env.items():
            if isinstance(value, str):
                env[name] = self._plain(self._env_paths.get(name, "env"), value, self._in_env)
            elif value.key in sealed:
                env[name] = Sealed(sealed=sealed[value.key])
            else:
                path = self._env_paths.get(name, "env")
                self.errors.append((path, f"{name} has no value", _SUPPLY.format(value.key)))
        for name, value in sealed.items():
            # An override of something the file gives a value, or does not have at all.
            if not any(isinstance(there, Supplied) and there.key == name for there in run.env.values()):
                env[name] = Sealed(sealed=value)
        self._check_sizes(env)
        return {**env}

    def _check_sizes(self, env: Mapping[str, str | Sealed]) -> None:
        sizes = {name: len(name) + _bytes(value) + 2 for name, value in env.items()}
        for name, size in sizes.items():
            if size > MAX_WORD:
                path = self._env_paths.get(name, "env")
                self.errors.append(
                    (path, f"{name} is larger than 128 KiB, the most a process can be given", _AS_FILE)
                )
        if sum(sizes.values()) > MAX_ENV:
            self.errors.append(("env", "is larger than 1 MiB, the most a process can be given", _AS_FILE))

    def _registry_auth(self, run: Task) -> RegistryAuth | None:
        if run.registry_auth is None:
            return None
        return RegistryAuth(
            username=self._secret("registry_auth.username", run.registry_auth.username),
            password=self._secret("registry_auth.password", run.registry_auth.password),
        )

    def _plain(self, path: str, text: str, lookup: _Lookup) -> str:
        return "".join(str(piece) for piece in self._pieces(path, text, lookup))

    def _secret(self, path: str, text: str) -> str | Sealed:
        pieces = self._pieces(path, text, self._in_registry_auth)
        sealed = [piece for piece in pieces if isinstance(piece, Sealed)]
        if sealed and len(pieces) > 1:
            self.errors.append(
                (path, "mixes a value taken from your environment with other text", "put the whole value into one")
            )
            return ""
        return sealed[0] if sealed else "".join(str(piece) for piece in pieces)

    def _pieces(self, path: str, text: str, lookup: _Lookup) -> list[str | Sealed]:
        try:
            return interpolate(text, lookup)
        except BadReference as bad:
            self.errors.append((path, bad.message, bad.hint))
            return []

    def _in_command(self, namespace: str, name: str) -> str | Sealed:
        if (namespace, name) == ("run", "args"):
            return self._arguments
        if namespace == "env":
            raise BadReference(f"refers to env.{name}", f"in a command, write ${name}: the shell knows it")
        if namespace == "secrets":
            raise BadReference(
                f"refers to secrets.{name}: {_NO_SECRETS}", "take it from your environment: env: [NAME]"
            )
        raise BadReference(f"refers to {namespace}.{name}, which is not known", "in commands there is run.args")

    def _in_env(self, namespace: str, name: str) -> str | Sealed:
        if namespace == "secrets":
            hint = f"take it from your environment: `- {name.upper()}` in env"
            raise BadReference(f"refers to secrets.{name}: {_NO_SECRETS}", hint)
        raise BadReference(
            f"refers to {namespace}.{name}, which is not known here", "a literal ${{ is written $${{ in YAML"
        )

    def _in_registry_auth(self, namespace: str, name: str) -> str | Sealed:
        if namespace == "env":
            value = self.env.get(name)
            if value is not None and not isinstance(value, tuple):
                return value
            raise BadReference(f"refers to env.{name}, which env does not have", f"add `- {name}` to env")
        return self._in_env(namespace, name)
