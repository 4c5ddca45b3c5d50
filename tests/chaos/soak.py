"""The soak itself: clients submit and stop, parts are killed, somebody watches; then all is left to settle."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from temporalio.service import RPCError, RPCStatusCode

from perdure.client import PerdureClient
from perdure.model.errors import Conflict, InvalidConfiguration
from perdure.model.ids import run_workflow_id
from perdure.model.messages import RunRequest
from tests.chaos import jobs, plan
from tests.chaos.place import PATIENCE, PROJECT, NotBack, Place, Victim, send
from tests.chaos.plan import Kind, Part, Strike, Work

CROWD = 8
"""Runs that are active at once, at most; the plan waits, however slow the machine is."""

LOOK_EVERY = 0.5

_INSTANT = """
SELECT 'fleet ' || f.name || ' has ' || count(*) || ' of at most ' || f.nodes_max AS finding
FROM fleets f JOIN instances i ON i.fleet_id = f.id
WHERE i.status NOT IN ('terminating', 'terminated') GROUP BY f.id HAVING count(*) > f.nodes_max
UNION ALL
SELECT i.name || ': busy_blocks is ' || i.busy_blocks || ' of ' || i.total_blocks || ', held are ' || count(h.block)
FROM instances i LEFT JOIN holdings h ON h.instance_id = i.id
GROUP BY i.id HAVING count(h.block) <> i.busy_blocks OR i.busy_blocks NOT BETWEEN 0 AND i.total_blocks
UNION ALL
SELECT 'run ' || run_id || ' node ' || node || ' has ' || count(*) || ' living submissions'
FROM jobs WHERE ended_at IS NULL GROUP BY run_id, replica, node HAVING count(*) > 1
"""
"""What may be true at no instant, not only at rest."""

_ENDS = """
SELECT id, status, reason, exit_status, ended_at FROM jobs WHERE ended_at IS NOT NULL
UNION ALL SELECT id, status, reason, NULL, ended_at FROM runs WHERE ended_at IS NOT NULL
"""
_RUNS = "SELECT id, name, status, ended_at FROM runs"


@dataclass
class Entry:
    """One run of the plan, and what its client knows."""

    work: Work
    run_id: UUID | None = None
    refusal: str | None = None
    stopped: bool = False
    """A client's stop was taken before the run had ended."""

    asked_at: float | None = None
    ended_in: float | None = None
    """Seconds from the first stop that was taken to the run's end as seen from outside."""

    over: bool = False


@dataclass
class Kill:
    """One strike that met somebody."""

    strike: Strike
    who: str
    needed: bool = True
    back_in: float | None = None
    """Seconds until its successor worked; None: not yet, or none was needed."""


@dataclass
class Record:
    """All that is known of a soak from the outside."""

    seed: int
    entries: list[Entry] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    missed: int = 0
    """Strikes that met nobody."""

    samples: int = 0
    at_an_instant: set[str] = field(default_factory=set)
    """Findings of samples."""

    ends: dict[UUID, dict[str, Any]] = field(default_factory=dict)
    changed_ends: list[str] = field(default_factory=list)
    not_back: list[str] = field(default_factory=list)
    seconds: float = 0.0
    settling: float = 0.0

    @property
    def active(self) -> list[Entry]:
        return [entry for entry in self.entries if not entry.over]


class Soak:
    def __init__(self, place: Place, seed: int, say: Callable[[Record, str], None]):
        """``say`` is told how far it is, often."""
        self.place = place
        self.record = Record(seed)
        self._say = say
        self._chores: set[asyncio.Task[None]] = set()
        self._statuses: dict[UUID, str] = {}
        self._mistakes: list[BaseException] = []
        """The soak's own."""

    async def run(self, seconds: float) -> Record:
        """For so long, and then until nothing moves any more."""
        await self.place.insist(lambda client: client.secrets.set(PROJECT, jobs.SECRET, jobs.SECRET_VALUE))
        began = time.monotonic()
        watch = asyncio.create_task(self._watch(began, seconds))
        watch.add_done_callback(self._done)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await asyncio.gather(self._submit(), self._strike())
        except NotBack as error:
            self.record.not_back.append(str(error))
        self.record.seconds = time.monotonic() - began
        await self._settle()
        self.record.settling = time.monotonic() - began - self.record.seconds
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)
        return self.record

    # --- clients --------------------------------------------------------------------------------------------------

    async def _submit(self) -> None:
        for work in plan.work(self.record.seed):
            await asyncio.sleep(work.after)
            while len(self.record.active) >= CROWD:  # noqa: ASYNC110 (rows say it, and nobody tells)
                await asyncio.sleep(0.1)
            entry = Entry(work)
            self.record.entries.append(entry)
            self._begin(self._one(entry))

    async def _one(self, entry: Entry) -> None:
        work = entry.work
        configuration = jobs.configuration(work, self.place.folder_of(work.name))
        request = RunRequest(configuration=configuration, user="soak")
        entry.run_id = await self.place.insist(lambda client: _applied(client, work.name, request))
        if work.kind is Kind.REFUSED:
            entry.refusal = await self._refusal(work.name, entry.run_id)
            entry.over = True
        elif work.stop is not None:
            await asyncio.sleep(work.stop.after)
            await self._stop(entry, abort=work.stop.abort, cancel=work.stop.cancel)
            if work.stop.abort_after is not None:
                await asyncio.sleep(work.stop.abort_after - work.stop.after)
                await self._stop(entry, abort=True)

    async def _stop(self, entry: Entry, *, abort: bool, cancel: bool = False) -> None:
        name = entry.work.name
        taken = await self.place.insist(
            lambda client: (
                _cancelled(client, name) if cancel else client.stop(PROJECT, name, abort=abort, by="soak")
            )
        )
        if taken and entry.asked_at is None:
            entry.stopped, entry.asked_at = True, time.monotonic()

    async def _refusal(self, name: str, run_id: UUID) -> str | None:
        async def asked(client: PerdureClient) -> str | None:
            try:
                await client.closed(PROJECT, name, run_id)
            except InvalidConfiguration as error:
                return error.message
            return None

        return await self.place.insist(asked)

    # --- kills ----------------------------------------------------------------------------------------------------

    async def _strike(self) -> None:
        for strike in plan.strikes(self.record.seed):
            await asyncio.sleep(strike.after)
            if strike.patient:
                await self.place.whole()
            if strike.part is Part.STACK:
                # Shielded: the end of the time must not leave it down.
                await asyncio.shield(self._begin(self._fall(strike)))
                continue
            victim = self.place.victim(strike.part, strike.pick)
            if victim is None:
                self.record.missed += 1
                continue
            kill = Kill(strike, victim.who)
            self.record.kills.append(kill)
            send(victim, hard=strike.hard)
            self._begin(self._recovers(kill, victim))

    async def _fall(self, strike: Strike) -> None:
        kill = Kill(strike, strike.part.value)
        self.record.kills.append(kill)
        began = time.monotonic()
        try:
            await asyncio.to_thread(self.place.fall, hard=strike.hard)
        except (AssertionError, subprocess.TimeoutExpired) as error:
            raise NotBack(f"perdure up does not start it again: {error}") from error
        kill.back_in = time.monotonic() - began

    async def _recovers(self, kill: Kill, victim: Victim) -> None:
        began = time.monotonic()
        while (now := victim.successor()) is None or now == victim.process:
            if not victim.process.alive and not victim.needed():
                kill.needed = False
                return
            if time.monotonic() - began > PATIENCE:
                how = "SIGKILL" if kill.strike.hard else "SIGTERM"
                raise NotBack(f"{kill.who} is not back {PATIENCE:.0f} s after {how}")
            await asyncio.sleep(0.05)
        kill.back_in = time.monotonic() - began

    # --- who watches ----------------------------------------------------------------------------------------------

    async def _watch(self, began: float, seconds: float) -> None:
        while True:
            with contextlib.suppress(OSError):
                await self._look()
            left = seconds - (time.monotonic() - began)
            self._say(self.record, f"{left:.0f} s to go" if left > 0 else "settling")
            await asyncio.sleep(LOOK_EVERY)

    async def _look(self) -> None:
        record = self.record
        found = await self.place.rows(_INSTANT)
        ends = await self.place.rows(_ENDS)
        runs = await self.place.rows(_RUNS)
        record.samples += 1
        record.at_an_instant.update(row["finding"] for row in found)
        for row in ends:
            before = record.ends.setdefault(row["id"], row)
            if before != row:
                record.changed_ends.append(f"{row['id']} ended as {before}, and is now {row}")
        self._statuses = {row["id"]: row["status"] for row in runs}
        ended = {row["id"] for row in runs if row["ended_at"] is not None}
        for entry in record.active:
            if entry.run_id in ended:
                entry.over = True
                if entry.asked_at is not None:
                    entry.ended_in = time.monotonic() - entry.asked_at

    # --- the end --------------------------------------------------------------------------------------------------

    async def _settle(self) -> None:
        """Until every run is over and nothing is left to do, or nothing has changed for ``PATIENCE``."""
        try:
            await self.place.whole()
        except NotBack as error:
            self.record.not_back.append(str(error))
        changed, before = time.monotonic(), None
        while (self._chores or self.record.active) and not self._mistakes:
            now = (len(self._chores), dict(self._statuses), len(self.record.ends))
            if now != before:
                changed, before = time.monotonic(), now
            if time.monotonic() - changed > PATIENCE:
                break
            await asyncio.sleep(0.2)
        for chore in self._chores:
            chore.cancel()
        if self._mistakes:
            raise self._mistakes[0]

    def _begin(self, work: Any) -> asyncio.Task[None]:
        async def noted() -> None:
            try:
                await work
            except NotBack as error:
                self.record.not_back.append(str(error))

        chore = asyncio.create_task(noted())
        self._chores.add(chore)
        chore.add_done_callback(self._done)
        return chore

    def _done(self, chore: asyncio.Task[None]) -> None:
        self._chores.discard(chore)
        if not chore.cancelled() and (error := chore.exception()) is not None:
            self._mistakes.append(error)


async def _cancelled(client: PerdureClient, name: str) -> bool:
    """As ``PerdureClient.stop``, by Temporal's own means."""
    try:
        await client.temporal.get_workflow_handle(run_workflow_id(PROJECT, name)).cancel()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            return False
        raise
    return True


async def _applied(client: PerdureClient, name: str, request: RunRequest) -> UUID:
    """Start a run, or find that an earlier call, whose answer was lost, has started it. Names are used once."""
    try:
        found = await client.temporal.get_workflow_handle(run_workflow_id(PROJECT, name)).describe()
        return UUID(found.run_id)
    except RPCError as error:
        if error.status is not RPCStatusCode.NOT_FOUND:
            raise
    try:
        return await client.apply(PROJECT, name, request)
    except Conflict:
        return await _applied(client, name, request)
