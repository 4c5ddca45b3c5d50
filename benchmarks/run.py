"""``make bench``: measures the numbers of the README's table on this machine, and prints the table.

But for the reading of a configuration, everything is the user's stack: a new folder, ``perdure up``, real shims,
real processes. Medians of at least seven.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import measures
import reading
from stack import TIMING, Stack, fresh, usage

from perdure.client import PerdureClient

SAMPLES = 15
STARTS = 5
ACTIVE = 50
IDLE_SECONDS = 20.0


def show(what: str, samples: list[float], target: str) -> None:
    ordered = sorted(samples)
    p95 = ordered[min(len(ordered) - 1, round(0.95 * (len(ordered) - 1)))]
    median = statistics.median(ordered)
    print(f"| {what} | {words(median)} | {words(p95)} | {target} | {len(samples)} |", flush=True)


def words(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{seconds * 1000:.0f} ms"


async def latencies(stack: Stack) -> None:
    client = await connect(stack)
    await measures.exit_to_done(client)  # the first run makes the instance
    show(
        "submit to RUNNING, warm instance",
        [await measures.submit_to_running(client) for _ in range(SAMPLES)],
        "0.5 / 1 s",
    )
    lines = [delay for _ in range(5) for delay in await measures.line_to_reader(client)]
    show("a log line printed to read by `logs -f`", lines, "0.3 s")
    show("command exits to run DONE", [await measures.exit_to_done(client) for _ in range(SAMPLES)], "0.3 s")
    show("stop to final status", [await measures.stop_to_final(client) for _ in range(SAMPLES)], "0.3 s")
    with tempfile.TemporaryDirectory(prefix="perdure-bench-") as folder:
        Path(folder).chmod(0o777)  # noqa: ASYNC240 (nothing else runs)
        again = [await measures.failure_to_running(client, folder, TIMING["retry_backoff"][0]) for _ in range(7)]
    show("failure to running again, less the backoff", again, "0.5 s")
    events = await measures.events_of_a_run(client)
    print(f"| events of a single-node task's whole life | {events} | | under 100 | 1 |")


async def idle(stack: Stack) -> None:
    client = await connect(stack)
    report(0, usage(stack, IDLE_SECONDS))
    fleet = {"type": "fleet", "name": "local", "nodes": f"0..{ACTIVE}", "placement": "cluster"}
    await client.apply_fleet(measures.PROJECT, "local", fleet)
    began = time.perf_counter()
    held = await measures.hold(client, ACTIVE)
    print(
        f"| {ACTIVE} runs at once to all RUNNING, each on an instance of its own, new | "
        f"{time.perf_counter() - began:.1f} s | | | 1 |"
    )
    await asyncio.sleep(5)
    report(ACTIVE, usage(stack, IDLE_SECONDS))
    await measures.let_go(client, held)


def report(active: int, parts: dict[str, tuple[float, float]]) -> None:
    for part, (cpu, memory) in parts.items():
        print(
            f"| idle, {active} active runs: {part} | {cpu:.1f} % of a core | {memory:.0f} MiB | | 1 |", flush=True
        )


async def connect(stack: Stack) -> PerdureClient:
    return await PerdureClient.connect(environ=stack.environment)


def main() -> None:
    print("| what | median | p95 | target | samples |\n|---|---|---|---|---|")
    show("a configuration of 300 lines read, checked and resolved", reading.samples(), "20 ms")
    starts: list[float] = []
    for _ in range(STARTS):
        with fresh() as stack:
            starts.append(stack.ready_seconds)
    show("`perdure up` on a new folder to ready", starts, "5 s")
    with fresh() as stack:
        asyncio.run(latencies(stack))
    with fresh() as stack:
        asyncio.run(idle(stack))


if __name__ == "__main__":
    main()
