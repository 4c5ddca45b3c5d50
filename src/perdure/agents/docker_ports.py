"""Host ports for containers in bridge mode: chosen before the container exists, and remembered."""

from __future__ import annotations

import random
import socket
from pathlib import Path

from pydantic import BaseModel

from perdure.agents import disk
from perdure.agents.execution import ExecutionError
from perdure.agents.protocol import PortMapping, TaskConfig
from perdure.model.statuses import JobReason

RANGE = range(20000, 30000)
"""Below what Linux hands out to outgoing connections (32768 and up), which might take a port before its use."""

TRIES = 200


class Ports(BaseModel):
    """``ports.json`` in the task's folder."""

    ports: list[PortMapping]


def choose(task: TaskConfig, folder: Path) -> list[PortMapping]:
    """A free port of 127.0.0.1 for each of the task's; asked again, the same ones. None in host mode: there a
    container's ports are the host's.

    Raises:
        ExecutionError: ``ports_binding_failed``.
    """
    if task.network_mode != "bridge" or not task.ports:
        return []
    if chosen := disk.read(folder / "ports.json", Ports):
        return chosen.ports
    taken = {port.host for other in _others(folder) for port in other.ports}
    mappings: list[PortMapping] = []
    for port in task.ports:
        host = _free(taken)
        taken.add(host)
        mappings.append(PortMapping(host=host, container=port))
    disk.write(folder / "ports.json", Ports(ports=mappings))
    return mappings


def chosen(folder: Path) -> list[PortMapping]:
    """What ``choose`` decided for the task."""
    record = disk.read(folder / "ports.json", Ports)
    return record.ports if record else []


def _others(folder: Path) -> list[Ports]:
    records = (disk.read(path, Ports) for path in folder.parent.glob("*/ports.json"))
    return [record for record in records if record]


def _free(taken: set[int]) -> int:
    for _ in range(TRIES):
        port = random.choice(RANGE)
        if port in taken:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise ExecutionError(
        JobReason.PORTS_BINDING_FAILED.value, f"No free port between {RANGE.start} and {RANGE.stop - 1}."
    )
