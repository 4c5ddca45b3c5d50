"""How long it takes to read a long configuration: no stack, only the language."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from uuid import UUID

from perdure import spec

LINES = 300
SAMPLES = 50


def configuration() -> str:
    """A task of three hundred lines: variables, commands, and every kind of short form."""
    head = (
        "type: task\nnodes: 2\nports: [80:8080, 9000]\nmax_duration: 2h\nidle_duration: off\nmax_price: 1.50\n"
        "resources:\n  cpu: 4..8\n  memory: 16GB..\n  gpu: nvidia:A100:40GB:2\nretry:\n  on_events: [error]\n"
        "  duration: 1h\ntags: {team: research}\nvolumes: [/data:/data]\n"
    )
    left = LINES - head.count("\n") - 2
    variables = "".join(f"  - NAME_{number}=value-{number}\n" for number in range(left // 2))
    commands = "".join(f"  - python step.py --number {number}\n" for number in range(left - left // 2))
    return f"{head}env:\n{variables}commands:\n{commands}"


def read(text: str) -> float:
    """Seconds from the text to what is in force, with where each value comes from."""
    began = time.perf_counter()
    spec.resolve(
        spec.load_yaml(text), run_id=UUID(int=1), project="main", name="bench", submitted_at=datetime.now(UTC)
    )
    return time.perf_counter() - began


def samples() -> list[float]:
    text = configuration()
    read(text)
    return [read(text) for _ in range(SAMPLES)]
