"""A signal to every process of a container, whatever the image holds.

The engine can signal a container's first process only, and that is its init, which passes a signal on to one child:
``bash -i`` ignores SIGTERM, and what it started never hears of it. On the engine's own host we signal each process
ourselves. Where we may not (no root, an engine in another pid namespace) we ask the image's ``kill``, and at
last the init.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from perdure.agents.docker_engine import Engine, EngineError


async def send(engine: Engine, container_id: str, name: str) -> None:
    """Signal every process but the init; a container that has ended is left alone.

    Raises:
        EngineError, EngineUnreachable
    """
    try:
        container = await engine.call("GET", f"/containers/{container_id}/json")
        if not container["State"]["Running"]:
            return
        processes = await _processes(engine, container_id, container["State"]["Pid"])
        if processes and _signal_each(processes, container["Id"], signal.Signals[name]):
            return
        if await _by_exec(engine, container_id, name):
            return
        await engine.call("POST", f"/containers/{container_id}/kill", params={"signal": name})
    except EngineError as error:
        if error.status not in (404, 409):
            raise


async def _processes(engine: Engine, container_id: str, init: int) -> list[int]:
    """The host's process ids of what runs beside the init."""
    listing: dict[str, Any] = await engine.call(
        "GET", f"/containers/{container_id}/top", params={"ps_args": "-eo pid"}
    )
    column = listing["Titles"].index("PID")
    return [pid for row in listing["Processes"] if (pid := int(row[column])) != init]


def _signal_each(processes: list[int], container_id: str, number: signal.Signals) -> bool:
    """Whether every process could be signalled. A pid is only believed if its cgroup is the container's: ids are
    used again, and may be another namespace's."""
    for pid in processes:
        try:
            if container_id not in Path(f"/proc/{pid}/cgroup").read_text():
                return False
            os.kill(pid, number)
        except (FileNotFoundError, ProcessLookupError):
            continue
        except PermissionError:
            return False
    return True


async def _by_exec(engine: Engine, container_id: str, name: str) -> bool:
    command = ["/bin/sh", "-c", f"kill -s {name.removeprefix('SIG')} -1"]
    body = {"Cmd": command, "User": "0", "AttachStdout": False, "AttachStderr": False}
    try:
        made = await engine.call("POST", f"/containers/{container_id}/exec", body=body)
        await engine.call("POST", f"/exec/{made['Id']}/start", body={"Detach": True})
    except EngineError as error:
        if error.status == 0:
            raise
        return False
    return True
