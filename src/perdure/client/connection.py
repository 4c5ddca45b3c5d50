"""Where Temporal is, and how to get there: Temporal's own settings, then the embedded stack's file."""

from __future__ import annotations

import asyncio
import functools
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from temporalio.client import Client
from temporalio.envconfig import ClientConfigProfile
from temporalio.runtime import Runtime, TelemetryConfig
from temporalio.service import RPCError

from perdure.client import room
from perdure.model.errors import ControlPlaneError
from perdure.wire import DATA_CONVERTER

CONNECT_WITHIN = 5.0
"""Seconds."""

START_HINT = "start the embedded stack with `perdure up`, or set TEMPORAL_ADDRESS"


@dataclass(frozen=True)
class Place:
    """One Temporal, and what said so."""

    address: str
    namespace: str
    source: str
    """In words: ``TEMPORAL_ADDRESS``, or a file."""

    options: Mapping[str, Any] = field(default_factory=dict)
    """More of ``Client.connect``: TLS, API key, headers."""

    ui: str | None = None
    """The web UI, if known."""

    stack: Path | None = None
    """``stack.json``, if this is the embedded stack of this machine."""

    def shortage(self) -> str | None:
        """Known only of the embedded stack: its disk is full, in one sentence."""
        return room.shortage(self.stack.parent) if self.stack is not None else None

    def fault(self, message: str, hint: str | None) -> ControlPlaneError:
        """What went wrong there; a full disk explains it better than its consequences do."""
        full = self.shortage()
        return ControlPlaneError(message, hint=hint) if full is None else ControlPlaneError(full, hint=room.HINT)

    def worker_is_dead(self) -> bool:
        """Known only of the embedded stack: its worker's process, as of now, is gone."""
        stack = _stack(self.stack) if self.stack is not None else None
        pid = _pid(stack.get("pids"), "worker") if stack is not None else None
        if pid is None:
            return False
        import psutil

        try:
            return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return True
        except psutil.Error:
            return False


def stack_file(environ: Mapping[str, str] = os.environ) -> Path:
    """``stack.json`` of the embedded stack: under ``PERDURE_HOME``, by default ``~/.perdure``."""
    home = environ.get("PERDURE_HOME")
    return (Path(home) if home else Path("~/.perdure")).expanduser() / "stack.json"


def find_temporal(environ: Mapping[str, str] = os.environ) -> Place:
    """What the environment says (``TEMPORAL_ADDRESS``, ``TEMPORAL_PROFILE``), else the embedded stack that is up,
    else the default profile of Temporal's configuration file.

    Raises:
        ControlPlaneError: none of them names a server, or one cannot be read.
    """
    profile = _profile(environ)
    explicit = [name for name in ("TEMPORAL_ADDRESS", "TEMPORAL_PROFILE") if environ.get(name)]
    if profile.address and explicit:
        return _of_profile(profile, explicit[0])
    path = stack_file(environ)
    stack = _stack(path)
    if stack is not None:
        return Place(
            address=str(stack["temporal"]),
            namespace=environ.get("TEMPORAL_NAMESPACE") or str(stack.get("namespace") or "default"),
            source=str(path),
            ui=stack.get("ui"),
            stack=path,
        )
    if profile.address:
        return _of_profile(profile, "the default profile of Temporal's configuration file")
    raise ControlPlaneError(
        f"no Temporal server is known: TEMPORAL_ADDRESS is not set, there is no {path},"
        " and Temporal's configuration file names none",
        hint=START_HINT,
    )


async def connect(place: Place) -> Client:
    """
    Raises:
        ControlPlaneError: it does not answer, says where it was looked for.
    """
    try:
        return await asyncio.wait_for(
            Client.connect(
                place.address,
                namespace=place.namespace,
                data_converter=DATA_CONVERTER,
                runtime=_runtime(),
                **place.options,
            ),
            CONNECT_WITHIN,
        )
    except TimeoutError as error:
        raise place.fault(
            f"Temporal did not answer within {CONNECT_WITHIN:.0f} s at {place.address} (from {place.source})",
            hint="check the address and the network",
        ) from error
    except (RuntimeError, OSError, RPCError, ValueError) as error:
        raise place.fault(
            f"Temporal cannot be reached at {place.address} (from {place.source}): {_short(error)}",
            hint="`perdure status` shows the embedded stack, `perdure up` starts it"
            if place.source.endswith("stack.json")
            else "check the address, or start the embedded stack with `perdure up`",
        ) from error


@functools.cache
def _runtime() -> Runtime:
    """One that logs nothing: it would tell of its retries in the user's terminal, and errors say it better."""
    return Runtime(telemetry=TelemetryConfig(logging=None))


def _profile(environ: Mapping[str, str]) -> ClientConfigProfile:
    ours = {name: value for name, value in environ.items() if _is_text(name + value)}  # it takes none with others
    try:
        return ClientConfigProfile.load(override_env_vars=ours)
    except (RuntimeError, ValueError, OSError) as error:
        raise ControlPlaneError(
            f"Temporal's settings cannot be read: {_short(error)}", hint="see TEMPORAL_PROFILE and its file"
        ) from error


def _is_text(value: str) -> bool:
    """Not of bytes that are not UTF-8, as the name of a user or of a folder may be."""
    return not any("\ud800" <= char <= "\udfff" for char in value)


def _of_profile(profile: ClientConfigProfile, source: str) -> Place:
    options: dict[str, Any] = dict(profile.to_client_connect_config())
    address = options.pop("target_host")
    return Place(address, options.pop("namespace", "default"), source, options)


def _stack(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ControlPlaneError(f"{path} cannot be read: {_short(error)}", hint="see `perdure status`") from error
    if not isinstance(found, dict) or not isinstance(found.get("temporal"), str):
        raise ControlPlaneError(f"{path} does not say where Temporal is", hint="see `perdure status`")
    return found


def _pid(pids: Any, part: str) -> int | None:
    pid = pids.get(part) if isinstance(pids, dict) else None
    return pid if isinstance(pid, int) and pid > 0 else None


def _short(error: BaseException) -> str:
    """The last link of a chain of causes, on one line: Temporal's own messages are long."""
    text = " ".join(str(error).split())
    for word in ("Connection refused", "dns error", "failed to lookup address", "invalid peer certificate"):
        if word.lower() in text.lower():
            return word.lower() if word != "dns error" else "the name is not known"
    return text[:200] or type(error).__name__
