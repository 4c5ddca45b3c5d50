"""A small world around the core of a run: claims, instances, and a post that is late, disordered and repetitive.

A discrete-event simulation. Everything outside the run is here in its simplest true form, with the answers that
Postgres and the workflows of jobs (``tests.core.agents``) would give; ``tests.core.oracle`` watches and checks. One
seed is one life of a run; ``faults`` says which kinds of trouble it may meet, so that a failing life can be made
smaller.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

from perdure.core import run as core
from perdure.core.run import state as happened
from perdure.model.events import ClaimFailed, ClaimGranted, JobEnded, JobReported, Placement, StopWanted
from perdure.model.messages import ClaimAnswer, Progress
from perdure.model.policy import RunPolicy
from perdure.model.statuses import ClaimStatus, JobReason, JobStatus
from tests.core.agents import Agents, Job
from tests.core.minutes import page
from tests.core.oracle import Oracle

START = datetime(2026, 1, 1, tzinfo=UTC)

LATENCY = 4.0
"""Seconds that a command takes at most, and news that is not late."""

LATE = 90.0
"""Seconds by which news is late at most, and after which the sweep tells again what was lost."""

FAULTS = frozenset(
    {
        *("lost", "late", "twice"),  # news
        *("away", "restart", "reset"),  # no worker for a while; continue-as-new; Temporal's reset
        *("refuse", "lose"),  # no capacity; a claim loses an instance
        *("fail", "unreachable", "deaf"),  # a job ends badly; its host does; it heeds no stop
        *("stop", "abort", "pause", "trigger"),  # somebody asks
    }
)
"""Kinds of trouble."""

Thing = tuple[datetime, int, Callable[[], None]]
"""When, in which order, what."""


@dataclass(slots=True)
class Claim:
    """As its row in Postgres. ``places``: what it holds still, by node."""

    id: UUID
    number: int
    replica: int
    submission: int
    status: ClaimStatus
    places: dict[int, Placement] = field(default_factory=dict)
    unmade: set[UUID] = field(default_factory=set)
    failed_at: datetime = START


@dataclass(slots=True)
class Chances:
    """How one life is: drawn once, from its seed."""

    capacity: float
    ready: float
    making_fails: float
    failure: float
    late: float
    twice: float
    run_seconds: float


class World:
    def __init__(
        self,
        rng: random.Random,
        policy: RunPolicy,
        chances: Chances,
        faults: frozenset[str],
        *,
        bounded: bool = True,
    ):
        self.random = rng
        self.policy = policy
        self.chances = chances
        self.faults = faults
        self.now = START
        self.state = core.new_run(policy)
        self.inbox: list[core.Event] = []
        self.claims: dict[UUID, Claim] = {}
        self.jobs: dict[tuple[int, int, int], Job] = {}
        self.instances: dict[UUID, Claim] = {}
        self.closed: core.Close | None = None
        self.trace: list[tuple[datetime, str, object]] = []
        self.agents = Agents(self)
        self.oracle = Oracle(self, bounded=bounded)
        self.agenda: list[Thing] = []
        self._count = 0
        self._execution = 0
        self._away_until = START
        self._wake_at: datetime | None = None
        self._stops: list[StopWanted] = []

    # --- time -----------------------------------------------------------------------------------------------------

    def after(self, seconds: float, what: Callable[[], None]) -> None:
        self._count += 1
        heapq.heappush(self.agenda, (self.now + timedelta(seconds=seconds), self._count, what))

    def chance(self, fault: str, probability: float) -> bool:
        """Drawn whether or not the fault may happen, so that the rest of the life stays the same without it."""
        return self.random.random() < probability and fault in self.faults

    def latency(self) -> float:
        """Of half seconds, so that things often happen at once."""
        return int(self.random.random() * 2 * LATENCY) / 2

    def run(self, steps: int) -> None:
        """Live, until the run closes or ``steps`` things have happened."""
        self.think()
        for _ in range(steps):
            if self.closed or not self.agenda:
                return
            self.happen(heapq.heappop(self.agenda))
            together = self.agenda and self.agenda[0][0] == self.now and self.random.random() < 0.5
            if not together:
                self.turn()

    def happen(self, thing: Thing) -> None:
        at, _, what = thing
        self.now = max(self.now, at)
        what()

    def turn(self) -> None:
        """The workflow's, if there is a worker, and anything to think about."""
        due = self.inbox or (self._wake_at is not None and self.now >= self._wake_at)
        if due and self.now >= self._away_until:
            self.think()

    # --- the workflow ---------------------------------------------------------------------------------------------

    def think(self) -> None:
        """One turn of the workflow: take what came in, decide, carry out."""
        if self.closed:
            return
        self._misfortune()
        for event in self.inbox:
            self.trace.append((self.now, "<-", event))
            self.oracle.hears(event)
            self.state = core.apply(self.state, event)
        self.inbox.clear()
        before, (self.state, decision) = self.state, core.settle(self.state, self.now)
        self.oracle.saw(before, decision)
        for command in decision.commands:
            self.trace.append((self.now, "->", command))
            self._carry_out(command)
        self._wake_at = decision.wake_at
        if decision.wake_at is not None:
            self.after((decision.wake_at - self.now).total_seconds(), lambda: None)
        self._record()

    def _record(self) -> None:
        """The projection: which ends have been heard."""
        heard = self.state.unheard
        if self.state.notes:
            self.inbox.append(happened.Noted(number=self.state.noted))
        if heard:
            self.inbox.append(happened.Heard(jobs=heard))
            for job in self.jobs.values():
                job.heard = job.heard or job.id in heard

    def _misfortune(self) -> None:
        draw = self.random.random()
        if draw < 0.04 and "restart" in self.faults:
            self.restart()
        elif draw < 0.044 and "reset" in self.faults:
            self.reset()
        elif draw < 0.06 and "away" in self.faults and not self._stops:
            self._away_until = self.now + timedelta(seconds=self.random.choice((10, 300, 7200)))
            self.after((self._away_until - self.now).total_seconds(), lambda: None)

    def restart(self) -> None:
        """The state is written and read again, as continue-as-new does."""
        self.oracle.survives_the_wire()
        self.state = core.RunState.model_validate_json(self.state.model_dump_json())

    def reset(self) -> None:
        """Temporal's: a new execution from the beginning. Steps under way are lost, stops are told again."""
        self.trace.append((self.now, "!!", "reset"))
        self._execution += 1
        self.state = core.new_run(self.policy, self._progress(), self.now)
        self.inbox = [event for event in self.inbox if isinstance(event, JobEnded | JobReported)] + self._stops
        self.oracle.forgets()

    def _progress(self) -> tuple[Progress, ...]:
        """What Postgres knows: each claim is a row."""
        found: list[Progress] = []
        for replica in range(self.policy.replicas):
            mine = [claim.submission for claim in self.claims.values() if claim.replica == replica]
            if mine:
                ends = [job.end for key, job in self.jobs.items() if (key[0], key[2]) == (replica, max(mine) - 1)]
                failed = [end.at for end in ends if end and end.status is JobStatus.FAILED]
                found.append(
                    Progress(
                        replica=replica,
                        submission=max(mine),
                        attempt=mine.count(max(mine)) - 1,
                        clock=min(failed, default=None),
                    )
                )
        return tuple(found)

    def answer(self, event: core.Event) -> None:
        """The end of a command: heard only by the execution that gave it."""
        execution = self._execution

        def heard() -> None:
            if execution == self._execution:
                self.inbox.append(event)

        self.after(self.latency(), heard)

    def news(self, event: core.Event) -> None:
        """A signal: lost, late, or twice."""
        if self.chance("lost", self.chances.late / 2):
            return
        late = self.chance("late", self.chances.late)
        self.after(self.random.random() * LATE if late else self.latency(), lambda: self.inbox.append(event))
        if self.chance("twice", self.chances.twice):
            self.after(self.random.choice((0.0, 30.0, 4000.0)), lambda: self.inbox.append(event))

    def ask(self, stop: StopWanted) -> None:
        """Somebody wants the run to end."""
        self._away_until = self.now
        if not stop.occurrence:
            self._stops.append(stop)
        self.inbox.append(stop)

    # --- carrying out ---------------------------------------------------------------------------------------------

    def _carry_out(self, command: core.Command) -> None:
        self.oracle.given(command)
        match command:
            case core.PlaceReplica():
                self._place(command)
            case core.WithdrawClaim():
                self._withdraw(self.claims[command.claim_id])
                self.answer(happened.Withdrawn(claim_id=command.claim_id, key=command.key))
            case core.MakeInstance():
                self._make(command)
            case core.StartJob():
                self.agents.start(command)
            case core.StopJob():
                self.agents.stop(command)
            case core.ReadCalendar():
                assert self.policy.schedule is not None
                found = page(self.policy.schedule, command.since, command.until)
                self.answer(happened.CalendarRead(question=command, page=found, at=self.now))
            case core.Close():
                self.closed = command
            case _:
                raise AssertionError(f"a change of mind reached the world: {command}")

    def _place(self, command: core.PlaceReplica) -> None:
        claim = self.claims.get(command.claim_id)
        again = claim is not None and claim.status is not ClaimStatus.WAITING
        if claim is None:
            claim = Claim(
                command.claim_id, len(self.claims), command.replica, command.submission, ClaimStatus.WAITING
            )
            self.claims[claim.id] = claim
            self._try(claim, command.wait)
        answer = ClaimAnswer(status=claim.status, placements=tuple(claim.places.values()), message="no room")
        known = self.agents.known(claim.replica, claim.submission, claim) if again else ()
        self.answer(happened.Placed(claim_id=claim.id, answer=answer, at=self.now, known=known))

    def _try(self, claim: Claim, wait: bool) -> None:
        if not self.chance("refuse", 1 - self.chances.capacity):
            self._grant(claim, ready=self.random.random() < self.chances.ready)
        elif wait:
            self.after(self.random.choice((5.0, 60.0, 1800.0, 86400.0)), lambda: self._turn(claim))
        else:
            claim.status = ClaimStatus.REFUSED if self.random.random() < 0.8 else ClaimStatus.FAILED

    def _turn(self, claim: Claim) -> None:
        """Of a claim in the queue: it is granted, or fails."""
        if claim.status is not ClaimStatus.WAITING:
            return
        if self.chance("lose", 0.2):
            self._fail(claim)
            return
        self._grant(claim, ready=self.random.random() < self.chances.ready)
        self._hand_over(claim)

    def _grant(self, claim: Claim, ready: bool) -> None:
        claim.status = ClaimStatus.READY if ready else ClaimStatus.GRANTED
        for node in range(self.policy.nodes):
            instance = UUID(int=len(self.instances) + 1)
            self.instances[instance] = claim
            address = f"10.0.0.{node}" if ready else None
            claim.places[node] = Placement(node=node, instance_id=instance, fresh=not ready, address=address)
            if not ready:
                claim.unmade.add(instance)
        if ready and self.chance("lose", self.chances.making_fails / 4):
            self.after(self.latency(), lambda: self._lose(claim))

    def _make(self, command: core.MakeInstance) -> None:
        instance = command.placement.instance_id
        claim = self.instances[instance]
        self.answer(happened.Made(instance_id=instance, key=command.key))
        if instance in claim.unmade:
            claim.unmade.discard(instance)
            if not claim.unmade:
                self.after(self.random.choice((1.0, 20.0, 500.0)), lambda: self._made(claim))

    def _made(self, claim: Claim) -> None:
        if claim.status is not ClaimStatus.GRANTED:
            return
        if self.chance("lose", self.chances.making_fails):
            self._lose(claim)
            return
        claim.status = ClaimStatus.READY
        for node, place in claim.places.items():
            claim.places[node] = place.but(fresh=False, address=f"10.0.0.{node}")
        self._hand_over(claim)

    def _fail(self, claim: Claim) -> None:
        claim.places, claim.status, claim.failed_at = {}, ClaimStatus.FAILED, self.now
        self._hand_over(claim)

    def _lose(self, claim: Claim) -> None:
        """One of its instances goes away. Jobs that are there tell of it themselves."""
        if not claim.places or not claim.status.holds:
            return
        if claim.status is ClaimStatus.GRANTED:
            self._fail(claim)
            return
        node = self.random.choice(sorted(claim.places))
        job = self.jobs.get((claim.replica, node, claim.submission))
        if job is not None:
            job.result, job.due = JobReason.INSTANCE_UNREACHABLE, self.now
            self.after(0, lambda: self.agents.end(job))
            return
        del claim.places[node]
        claim.failed_at = self.now
        if not claim.places:
            claim.status = ClaimStatus.FAILED
        self._hand_over(claim)

    def _hand_over(self, claim: Claim) -> None:
        """Tell how a claim stands; the sweep does so again while nobody has acted on it."""
        self._tell(claim)
        self.after(LATE, lambda: self._sweep(claim))

    def _sweep(self, claim: Claim) -> None:
        later = any(it.replica == claim.replica for it in list(self.claims.values())[claim.number + 1 :])
        jobs = any(job.claim is claim for job in self.jobs.values())
        if later or jobs or claim.status is ClaimStatus.RELEASED or self.closed:
            return
        self._tell(claim)
        self.after(LATE, lambda: self._sweep(claim))

    def _tell(self, claim: Claim) -> None:
        places = tuple(claim.places.values())
        run_id, ready = self.policy.run_id, claim.status is ClaimStatus.READY
        if claim.status.holds and len(places) == self.policy.nodes:
            self.news(ClaimGranted(run_id=run_id, claim_id=claim.id, placements=places, ready=ready))
        else:
            self.news(ClaimFailed(run_id=run_id, claim_id=claim.id, at=claim.failed_at, message="it went away"))

    def _withdraw(self, claim: Claim) -> None:
        """Blocks under a job that has not ended are given back by its end."""
        live = {job.node for job in self.jobs.values() if job.claim is claim and job.end is None}
        claim.places = {node: place for node, place in claim.places.items() if node in live}
        if not claim.places and claim.status in (ClaimStatus.WAITING, ClaimStatus.GRANTED, ClaimStatus.READY):
            claim.status = ClaimStatus.RELEASED
