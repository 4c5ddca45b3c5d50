"""What the runs of a soak are: their configurations, and the witness that each of their starts leaves.

Each start of a job appends to a file of its own, named by its node and by the id of its submission:

    start                 once, first
    secret SHA256         of the value it was given
    line 1 …              after each line that it has printed
    exit 3                before it exits by itself

So that what was done is known from the doers, and not only from those who keep records. What it prints is known
beforehand: stderr, where a shell tells the fate of its children, leads nowhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from tests.chaos.plan import Kind, OnTerm, Work

SECRET, SECRET_VALUE = "soak-token", "soak-hunter2-value"
"""Kept as a secret of the project; every job is given it."""

MAX_DURATION = 4
"""Seconds, of a run that overruns."""

BACKOFF = 1.0
"""Seconds before a retry."""

_TRAPS = {OnTerm.DIES: "", OnTerm.SAVES: "trap 'echo \"$me saved\"; exit 0' TERM", OnTerm.IGNORES: "trap '' TERM"}

_SCRIPT = """\
exec 2>/dev/null
me="{name} $PERDURE_NODE_RANK $PERDURE_JOB_ID"
witness={folder}/$PERDURE_NODE_RANK.$PERDURE_JOB_ID
echo start >> $witness
echo "secret $(printf %s "$TOKEN" | sha256sum | cut -c1-64)" >> $witness
{trap}
i=0
while [ $i -lt {lines} ]; do i=$((i+1)); echo "$me $i"; echo "line $i" >> $witness; sleep {pace}; done
code=0; tries=$(ls {folder}/$PERDURE_NODE_RANK.* | wc -l)
if [ $PERDURE_NODE_RANK = {failing_node} ] && [ $tries -le {failures} ]; then code={code}; fi
echo "exit $code" >> $witness
exit $code"""


def configuration(work: Work, folder: Path) -> dict[str, Any]:
    """As a user would write it. Every run waits for capacity."""
    if work.kind is Kind.REFUSED:
        return {"type": "task", "commands": ["true"], "nodes": "many", "max_duration": "soon"}
    on = ["no-capacity", "error"] if work.kind in (Kind.RETRIES, Kind.GIVES_UP) else ["no-capacity"]
    script = _SCRIPT.format(
        name=work.name,
        folder=folder,
        trap=_TRAPS[work.on_term],
        lines=work.lines,
        pace=work.pace,
        failing_node=work.failing_node,
        failures=work.failures if work.kind is Kind.RETRIES else 10**6,
        code=work.code,
    )
    return {
        "type": "task",
        "nodes": work.nodes,
        "commands": [script],
        "env": {"TOKEN": f"${{{{ secrets.{SECRET} }}}}"},
        "resources": {"cpu": "1..", "memory": "0.1GB..", "disk": "1GB.."},
        "retry": {"on_events": on, "duration": "1d"}
        | ({"max_attempts": work.failures} if work.kind is Kind.GIVES_UP else {}),
        "idle_duration": f"{work.idle}s",
    } | ({"max_duration": f"{MAX_DURATION}s"} if work.kind is Kind.OVERRUNS else {})


@dataclass(frozen=True)
class Witness:
    """What one submission of one job says it did."""

    node: int
    job_id: UUID
    starts: int
    lines: int
    exits: tuple[int, ...]
    secrets: tuple[str, ...]


def witnesses(folder: Path) -> Mapping[UUID, Witness]:
    """All of one run, by job."""
    found = (_read(path) for path in folder.iterdir())
    return {witness.job_id: witness for witness in found}


def _read(path: Path) -> Witness:
    node, _, job_id = path.name.partition(".")
    words = [line.split() for line in path.read_text().splitlines()]
    return Witness(
        node=int(node),
        job_id=UUID(job_id),
        starts=sum(it == ["start"] for it in words),
        lines=sum(it[0] == "line" for it in words),
        exits=tuple(int(it[1]) for it in words if it[0] == "exit"),
        secrets=tuple(it[1] for it in words if it[0] == "secret"),
    )


def printed(work: Work, node: int, job_id: UUID, lines: int, *, saved: bool = False) -> bytes:
    """What a submission's log is after so many lines."""
    me = f"{work.name} {node} {job_id}"
    return "".join(f"{me} {number}\n" for number in range(1, lines + 1)).encode() + (
        f"{me} saved\n".encode() if saved else b""
    )


def secret_hash() -> str:
    return hashlib.sha256(SECRET_VALUE.encode()).hexdigest()
