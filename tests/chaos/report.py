"""What a soak says: a line while it goes on, and its report at the end."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence

from tests.chaos.checks import Finding, Verdict
from tests.chaos.evidence import Evidence
from tests.chaos.plan import Part
from tests.chaos.soak import Record

LINE_EVERY = 15.0
"""Seconds between two lines, where no terminal shows one that changes."""


class Progress:
    """One line that changes on a terminal; elsewhere, one now and then."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._said = -LINE_EVERY

    def __call__(self, record: Record, now: str) -> None:
        over = len(record.entries) - len(record.active)
        line = f"{now}: {len(record.entries)} runs, {over} over, {len(record.kills)} kills"
        last = next((f"; last: {kill.who}" for kill in reversed(record.kills)), "")
        if self._terminal:
            print(f"\r\x1b[K{line}{last}"[:110], end="", file=sys.stderr, flush=True)
        elif time.monotonic() >= self._said + LINE_EVERY:
            self._said = time.monotonic()
            print(f"{line}{last}", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self._terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def report(evidence: Evidence, verdicts: Sequence[Verdict]) -> str:
    """All of it, as text."""
    record = evidence.record
    lines = [
        f"chaos, seed {record.seed}: {record.seconds / 60:.1f} minutes, settled in {record.settling:.0f} s",
        "",
        *_runs(evidence),
        "",
        *_kills(record),
        "",
        *(_verdict(verdict) for verdict in verdicts),
    ]
    broken = sum(len(verdict.findings) for verdict in verdicts)
    lines += ["", "every invariant holds" if not broken else f"{broken} violations"]
    return "\n".join(lines)


def _runs(evidence: Evidence) -> Iterator[str]:
    stories = evidence.stories
    kinds = Counter(story.entry.work.kind.value for story in stories)
    ends = Counter(story.row.status for story in stories if story.row is not None)
    yield f"runs       {len(stories):5}   " + ", ".join(f"{n} {kind}" for kind, n in kinds.most_common())
    yield " " * 19 + ", ".join(f"{n} {status}" for status, n in ends.most_common())
    gangs = sum(story.entry.work.nodes > 1 for story in stories)
    counts = evidence.counts
    yield f"           {'':5}   {gangs} gangs, {counts['jobs']} jobs, {counts['instances']} instances"
    stops = [story.entry.ended_in for story in stories if story.entry.ended_in is not None]
    longest = f"; the longest took {max(stops):.1f} s" if stops else ""
    yield f"stops      {sum(story.entry.stopped for story in stories):5}   heard before the end{longest}"


def _kills(record: Record) -> Iterator[str]:
    yield f"kills      {len(record.kills):5}   and {record.missed} that met nobody"
    for part in Part:
        mine = [kill for kill in record.kills if kill.strike.part is part]
        hard = sum(kill.strike.hard for kill in mine)
        back = [kill.back_in for kill in mine if kill.back_in is not None]
        longest = f", the longest in {max(back):.1f} s" if back else ""
        how = f"{hard} SIGKILL, {len(mine) - hard} SIGTERM"
        yield f"  {part.value:8} {len(mine):5}   {how}; {len(back)} back{longest}"


def _verdict(verdict: Verdict) -> str:
    mark = "ok" if not verdict.findings else "BROKEN"
    number = str(verdict.number or "")
    line = f"{mark:>6} {number:>3}  {verdict.invariant:50} {verdict.count:6} {verdict.what}"
    return "\n".join([line, *(f"            {_finding(it)}" for it in verdict.findings)])


def _finding(finding: Finding) -> str:
    return (f"{finding.story.name} " if finding.story is not None else "") + finding.words
