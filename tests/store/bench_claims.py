"""Claims and releases a second, from several connections at once: ``python -m tests.store.bench_claims``."""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
import time
from pathlib import Path
from uuid import uuid4

from perdure.store.database import Database
from perdure.store.migrations import migrate
from tests.support.inventory import Inventory
from tests.support.postgres import start, stop

CLIENTS = 8
SECONDS = 4.0


async def measure(url: str, instances: int) -> tuple[float, float]:
    """Pairs a second on one fleet whose instances are warm, and our processor time of a pair in milliseconds."""
    await migrate(url)
    db = Database(url)
    inventory = Inventory(db, project=f"p{instances}")
    await inventory.fleet(nodes=(0, instances))
    warm = [await inventory.claim() for _ in range(instances)]
    for request, answer in warm:
        await inventory.ready(answer.placements[0].instance_id)
        await inventory.end(request, answer.placements[0].instance_id)
    run_id = await inventory.run()
    until, pairs, used = time.monotonic() + SECONDS, 0, time.process_time()

    async def client() -> None:
        nonlocal pairs
        submission = 0
        while time.monotonic() < until:
            submission += 1
            request, answer = await inventory.claim(run_id, uuid4(), submission=submission)
            assert answer.status == "ready", answer
            await inventory.withdraw(request.claim_id)
            pairs += 1

    await asyncio.gather(*(client() for _ in range(CLIENTS)))
    used = time.process_time() - used
    await db.close()
    return pairs / SECONDS, 1000 * used / pairs


def main() -> None:
    root = Path(tempfile.mkdtemp(prefix="perdure-bench-"))
    root.chmod(0o755)
    server = start(root / "server", *sys.argv[1:])
    try:
        for instances in (8, 100):
            rate, cost = asyncio.run(measure(server.url("postgres"), instances))
            print(f"{instances} instances: {rate:.0f} pairs/s, {cost:.2f} ms of our processor a pair")
    finally:
        stop(server)
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
