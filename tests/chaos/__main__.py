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
from tests.chaos.place import TIMING, NotBack, Place
from tests.chaos.report import Progress, report
from tests.chaos.soak import Soak
from tests.support.stack import fresh


def main() -> int:
    minutes = float(os.environ.get("CHAOS_MINUTES", "5"))
    seed = int(os.environ.get("CHAOS_SEED") or random.randrange(10**6))
    print(f"chaos for {minutes:g} minutes; again with: make chaos CHAOS_SEED={seed}", file=sys.stderr)
    return 0 if soak(seed, minutes * 60) else 1


def soak(seed: int, seconds: float) -> bool:
    """Whether every invariant holds; prints the report."""
    with fresh(environ={"PERDURE_TIMING": json.dumps(TIMING)}) as stack:
        place = Place(stack)
        place.prepare()
        stack.up()
        said, sound = asyncio.run(_soak(place, seed, seconds))
        print(said)
        return sound


async def _soak(place: Place, seed: int, seconds: float) -> tuple[str, bool]:
    progress = Progress()
    folder = Path(tempfile.gettempdir()) / f"perdure-chaos-{seed}"
    kept = f"logs, and what else there is, are kept in {folder}"
    again = f"again with: make chaos CHAOS_SEED={seed} CHAOS_MINUTES={seconds / 60:g}"
    record = await Soak(place, seed, progress).run(seconds)
    try:
        found = await evidence.gather(place, record)
    except (NotBack, OSError) as error:
        evidence.keep_logs(place, folder)
        return "\n".join([f"nothing can be checked: {error}", *record.not_back, kept, again]), False
    finally:
        progress.end()
    judged = verdicts(found)
    said = report(found, judged)
    findings = [finding for verdict in judged for finding in verdict.findings]
    if not findings:
        return said, True
    broken = {finding.story.name: finding.story for finding in findings if finding.story is not None}
    await evidence.keep(place, folder, list(broken.values()))
    stories = [f"--- {name}\n{await evidence.told(place, story)}" for name, story in broken.items()]
    return "\n".join([said, *stories, kept, again]), False


if __name__ == "__main__":
    sys.exit(main())
