"""``make chaos``: a soak on an embedded stack of its own, in a folder of its own.

    CHAOS_MINUTES   how long parts are killed; 5
    CHAOS_SEED      the plan; without it, one is chosen and shown

Exits with 1 if an invariant is broken, and says where all that tells of it is kept.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import tempfile
from pathlib import Path

from tests.chaos import evidence
from tests.chaos.checks import verdicts
from tests.chaos.place import TIMING, Place
from tests.chaos.report import Progress, report
from tests.chaos.soak import Soak
from tests.support.stack import fresh


def main() -> int:
    minutes = float(os.environ.get("CHAOS_MINUTES", "5"))
    seed = int(os.environ.get("CHAOS_SEED") or random.randrange(10**6))
    print(f"chaos for {minutes:g} minutes; again with: make chaos CHAOS_SEED={seed}", file=sys.stderr)
    said, sound = soak(seed, minutes * 60)
    print(said)
    return 0 if sound else 1


def soak(seed: int, seconds: float) -> tuple[str, bool]:
    """The report, and whether every invariant holds."""
    with fresh(environ={"PERDURE_TIMING": json.dumps(TIMING)}) as stack:
        place = Place(stack)
        place.prepare()
        stack.up()
        return asyncio.run(_soak(place, seed, seconds))


async def _soak(place: Place, seed: int, seconds: float) -> tuple[str, bool]:
    progress = Progress()
    record = await Soak(place, seed, progress).run(seconds)
    found = await evidence.gather(place, record)
    progress.end()
    judged = verdicts(found)
    said = report(found, judged)
    findings = [finding for verdict in judged for finding in verdict.findings]
    if not findings:
        return said, True
    broken = {finding.story.name: finding.story for finding in findings if finding.story is not None}
    folder = Path(tempfile.gettempdir()) / f"perdure-chaos-{seed}"
    await evidence.keep(place, folder, list(broken.values()))
    stories = [f"--- {name}\n{await evidence.told(place, story)}" for name, story in broken.items()]
    again = f"again with: make chaos CHAOS_SEED={seed} CHAOS_MINUTES={seconds / 60:g}"
    return "\n".join([said, *stories, f"logs, rows and starts are kept in {folder}", again]), False


if __name__ == "__main__":
    sys.exit(main())
