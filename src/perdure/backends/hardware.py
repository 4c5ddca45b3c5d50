"""What this machine has."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from perdure.agents.executors import engine
from perdure.model.resources import Gpu, Resources

ARCHITECTURES = {"x86_64": "x86", "amd64": "x86", "aarch64": "arm", "arm64": "arm"}

ENGINE_WITHIN = 2.0
"""Seconds for a container engine to take a connection."""


def this_machine(disk: Path) -> Resources:
    """CPUs, memory, GPUs, and the free space where ``disk`` is."""
    return Resources(
        cpus=_cpus(),
        cpu_arch=ARCHITECTURES.get(platform.machine().lower(), platform.machine().lower()),
        memory_mib=psutil.virtual_memory().total // 1024**2,
        disk_mib=shutil.disk_usage(disk).free // 1024**2,
        gpus=gpus(),
    )


def gpus() -> tuple[Gpu, ...]:
    """What ``nvidia-smi`` says; none where it is not, or cannot reach its driver."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    try:
        said = subprocess.run(
            [program, "--query-gpu=name,memory.total", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return ()
    found: list[Gpu] = []
    for line in said.splitlines():
        name, _, memory = line.rpartition(",")
        if memory.strip().isdigit():
            found.append(Gpu(vendor="nvidia", name=short_name(name), memory_mib=float(memory)))
    return tuple(found)


def short_name(name: str) -> str:
    """``NVIDIA A100-SXM4-40GB`` is ``A100``, as users ask for it."""
    words = name.replace("NVIDIA", "").replace("GeForce", "").replace("Tesla", "").strip().replace("-", " ").split()
    return "".join(words[:2]) if words[:1] == ["RTX"] else (words[0] if words else name.strip())


def container_engine() -> bool:
    """Whether the container engine that agents would use takes connections."""
    address = urlsplit(engine() or "")
    try:
        if address.scheme == "unix":
            with socket.socket(socket.AF_UNIX) as probe:
                probe.settimeout(ENGINE_WITHIN)
                probe.connect(address.path)
            return True
        if address.hostname:
            socket.create_connection((address.hostname, address.port or 2375), ENGINE_WITHIN).close()
            return True
    except OSError:
        return False
    return False


def _cpus() -> int:
    """Those this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return psutil.cpu_count() or 1
