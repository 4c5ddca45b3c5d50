"""What is measured on a warm stack, each a list of samples in seconds."""

from __future__ import annotations

import asyncio
import contextlib
import time
from uuid import UUID, uuid4

from perdure.client import PerdureClient
from perdure.model.errors import NotFound
from perdure.model.messages import RunRequest

PROJECT = "main"


def task(*commands: str, **fields: object) -> RunRequest:
    return RunRequest(configuration={"type": "task", "commands": list(commands), **fields}, user="bench")


def name(prefix: str) -> str:
    return f"{prefix}-{uuid4().hex[:8]}"


async def status(client: PerdureClient, run: str, run_id: UUID, *wanted: str) -> float:
    """The time at which a reader first sees one of these statuses."""
    while True:
        with contextlib.suppress(NotFound):  # its first step, which writes its row, is under way
            if (await client.get_run(PROJECT, run, run_id)).status in wanted:
                return time.time()
        await asyncio.sleep(0.005)


async def submit_to_running(client: PerdureClient) -> float:
    run, began = name("start"), time.time()
    run_id = await client.apply(PROJECT, run, task("sleep 60"))
    seen = await status(client, run, run_id, "running")
    await client.stop(PROJECT, run, abort=True)
    await client.wait(PROJECT, run, run_id)
    return seen - began


async def stop_to_final(client: PerdureClient) -> float:
    run = name("stop")
    run_id = await client.apply(PROJECT, run, task("exec sleep 60"))
    await status(client, run, run_id, "running")
    began = time.time()
    await client.stop(PROJECT, run)
    await client.wait(PROJECT, run, run_id)
    return time.time() - began


async def exit_to_done(client: PerdureClient) -> float:
    run = name("exit")
    run_id = await client.apply(PROJECT, run, task("sleep 1", "date +%s.%N"))
    await client.wait(PROJECT, run, run_id)
    ended = time.time()
    printed = b"".join([piece.data async for piece in client.follow_logs(PROJECT, run, run_id=run_id, wait=False)])
    return ended - float(printed)


async def line_to_reader(client: PerdureClient) -> list[float]:
    """Of each of ten lines printed 0.3 s apart."""
    run = name("lines")
    run_id = await client.apply(
        PROJECT, run, task("for i in 1 2 3 4 5 6 7 8 9 10; do date +%s.%N; sleep 0.3; done")
    )
    await status(client, run, run_id, "running")
    delays: list[float] = []
    async for piece in client.follow_logs(PROJECT, run, run_id=run_id):
        seen = time.time()
        delays += [seen - float(line) for line in piece.data.split()]
    await client.wait(PROJECT, run, run_id)
    return delays


async def failure_to_running(client: PerdureClient, folder: str, backoff: float) -> float:
    """From the failed command's last line to the first line of the next attempt, less the backoff."""
    run = name("again")
    command = f"date +%s.%N; test -e {folder}/{run} || {{ touch {folder}/{run}; exit 3; }}"
    run_id = await client.apply(PROJECT, run, task(command, retry=True))
    row = await client.wait(PROJECT, run, run_id)
    times = []
    for attempt in range(len(row.jobs)):
        pieces = client.follow_logs(PROJECT, run, run_id=run_id, attempt=attempt, wait=False)
        times.append(float(b"".join([piece.data async for piece in pieces])))
    first, second = times
    return second - first - backoff


async def events_of_a_run(client: PerdureClient) -> int:
    """Events in the histories of a single-node task's whole life, run and job together."""
    run = name("events")
    run_id = await client.apply(PROJECT, run, task("true"))
    await client.wait(PROJECT, run, run_id)
    total = 0
    for workflow_id in (f"run/{PROJECT}/{run}", f"job/{run_id}/0-0/0"):
        history = await client.temporal.get_workflow_handle(workflow_id).fetch_history()
        total += len(history.events)
    return total


async def hold(client: PerdureClient, count: int) -> list[tuple[str, UUID]]:
    """Start that many runs that do nothing, and wait until all run."""
    runs = [name("idle") for _ in range(count)]
    ids = await asyncio.gather(*(client.apply(PROJECT, run, task("exec sleep 600", retry=True)) for run in runs))
    held = list(zip(runs, ids, strict=True))
    while True:  # one reader for all: fifty would be the load that is measured
        rows = {row.run_id: row.status for row in await client.list_runs(PROJECT, limit=2 * count)}
        if all(rows.get(run_id) == "running" for run_id in ids):
            return held
        await asyncio.sleep(0.2)


async def let_go(client: PerdureClient, held: list[tuple[str, UUID]]) -> None:
    await asyncio.gather(*(client.stop(PROJECT, run, abort=True) for run, _ in held))
    await asyncio.gather(*(client.wait(PROJECT, run, run_id) for run, run_id in held))
