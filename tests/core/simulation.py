"""A small world around the core of a run: it carries out commands in any order, at any time, and checks as it goes.

Everything outside the run is here in its simplest true form: a queue of claims, jobs that run and end, a mailbox
that delays, reorders and repeats. ``play`` draws one interleaving from a seed.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from uuid import UUID

from perdure.core import run as core
from perdure.core.run import state as happened
from perdure.model.events import ClaimFailed, ClaimGranted, JobEnded, JobReported, Placement, StopWanted
from perdure.model.messages import ClaimAnswer
from perdure.model.policy import Retry, RunPolicy
from perdure.model.statuses import (
    JOB_REASONS,
    ClaimStatus,
    JobReason,
    JobStatus,
    RetryEvent,
    RunStatus,
    StartupOrder,
    StopCriteria,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
FAILURES = (JobReason.CONTAINER_EXITED_WITH_ERROR, JobReason.INSTANCE_UNREACHABLE, JobReason.EXECUTOR_ERROR)


@dataclass
class Running:
    """A job out in the world. ``result`` is how it ends if nobody stops it."""

    replica: int
    node: int
    submission: int
    claim: UUID
    result: JobReason
    stopped: core.StopJob | None = None
    ended: bool = False


@dataclass
class World:
    policy: RunPolicy
    random: random.Random
    now: datetime = START
    state: core.RunState = field(init=False)
    mail: list[core.Event] = field(default_factory=list)
    jobs: list[Running] = field(default_factory=list)
    holding: dict[UUID, set[int]] = field(default_factory=dict)
    waiting: set[UUID] = field(default_factory=set)
    made: set[UUID] = field(default_factory=set)
    claims_seen: set[UUID] = field(default_factory=set)
    closed: core.Close | None = None
    wake_at: datetime | None = None
    capacity_chance: float = 0.7
    failure_chance: float = 0.2
    trace: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state = core.new_run(self.policy)

    # --- the run's side -------------------------------------------------------------------------------------------

    def think(self) -> None:
        """One turn of the workflow: take the mail that has arrived, decide, carry out."""
        if self.closed:
            return
        for event in self._arrived():
            self.trace.append(f"{self.now:%H:%M:%S} <- {event.__class__.__name__} {event}")
            self.state = core.apply(self.state, event)
        self.state, decision = core.settle(self.state, self.now)
        self.wake_at = decision.wake_at
        for command in decision.commands:
            self.trace.append(f"{self.now:%H:%M:%S} -> {command}")
            self._carry_out(command)

    def _arrived(self) -> list[core.Event]:
        some = [event for event in self.mail if self.random.random() < 0.7]
        self.mail = [event for event in self.mail if event not in some]
        self.random.shuffle(some)
        again = [
            event for event in some if isinstance(event, JobEnded | ClaimGranted) and self.random.random() < 0.1
        ]
        self.mail += again
        return some

    def _carry_out(self, command: core.Command) -> None:
        match command:
            case core.PlaceReplica():
                assert command.claim_id not in self.claims_seen, "a claim id was used twice"
                self.claims_seen.add(command.claim_id)
                self._place(command)
            case core.WithdrawClaim():
                self.made.add(command.claim_id)
                self.waiting.discard(command.claim_id)
                self.holding.pop(command.claim_id, None)
                self.mail.append(happened.Withdrawn(claim_id=command.claim_id, key=command.key))
            case core.MakeInstance():
                self.mail.append(happened.Made(instance_id=command.placement.instance_id, key=command.key))
            case core.StartJob():
                self._start(command)
            case core.StopJob():
                for job in self._of(command.replica, command.node, command.submission):
                    job.stopped = job.stopped or command
                self.mail.append(happened.Stopped(key=command.key))
            case core.Close():
                self.closed = command
            case _:
                raise AssertionError(f"a change of mind reached the world: {command}")

    def _place(self, command: core.PlaceReplica) -> None:
        claim = command.claim_id
        if self.random.random() < self.capacity_chance:
            ready = self.random.random() < 0.5
            status = ClaimStatus.READY if ready else ClaimStatus.GRANTED
            answer = ClaimAnswer(status=status, placements=self._grant(claim, ready))
        elif command.wait:
            self.waiting.add(claim)
            answer = ClaimAnswer(status=ClaimStatus.WAITING, message="no room")
        else:
            answer = ClaimAnswer(status=ClaimStatus.REFUSED, message="no room")
        self.mail.append(happened.Placed(claim_id=claim, answer=answer, at=self.now))

    def _grant(self, claim: UUID, ready: bool) -> tuple[Placement, ...]:
        self.holding[claim] = set(range(self.policy.nodes))
        return tuple(
            Placement(
                node=node,
                instance_id=_uuid(self.random),
                fresh=not ready,
                address=f"10.0.0.{node}" if ready else None,
            )
            for node in range(self.policy.nodes)
        )

    def _start(self, command: core.StartJob) -> None:
        assert not self._of(command.replica, command.node, command.submission), "a job was started twice"
        assert command.node in self.holding.get(command.claim_id, set()), "a job was started on nothing"
        older = [job for job in self.jobs if job.replica == command.replica and not job.ended]
        assert all(job.submission == command.submission for job in older), "two submissions run at once"
        bad = self.random.random() < self.failure_chance
        result = self.random.choice(FAILURES) if bad else JobReason.DONE_BY_RUNNER
        self.jobs.append(Running(command.replica, command.node, command.submission, command.claim_id, result))
        self.mail.append(
            happened.Started(
                replica=command.replica, node=command.node, submission=command.submission, key=command.key
            )
        )
        self.mail.append(
            JobReported(
                run_id=self.policy.run_id,
                replica=command.replica,
                node=command.node,
                submission=command.submission,
                status=JobStatus.RUNNING,
                at=self.now,
            )
        )

    def _of(self, replica: int, node: int, submission: int) -> list[Running]:
        return [job for job in self.jobs if (job.replica, job.node, job.submission) == (replica, node, submission)]

    # --- the world's side -----------------------------------------------------------------------------------------

    def happen(self) -> None:
        """One thing that was due, or time."""
        choices = [self._time]
        alive = [job for job in self.jobs if not job.ended]
        if alive:
            choices.append(lambda: self._end(self.random.choice(alive)))
        if self.waiting and self.random.random() < self.capacity_chance:
            choices.append(self._grant_waiting)
        making = [claim for claim in self.holding if claim not in self.made and self._making(claim)]
        if making:
            choices.append(lambda: self._finish_making(self.random.choice(making)))
        self.random.choice(choices)()

    def _time(self) -> None:
        if self.wake_at is not None and self.random.random() < 0.7:
            self.now = max(self.now, self.wake_at)
        else:
            self.now += timedelta(seconds=self.random.uniform(0.01, 60))

    def _making(self, claim: UUID) -> bool:
        return any(
            it.phase is happened.Phase.MAKING and self.state.claim_of(it) == claim for it in self.state.replicas
        )

    def _finish_making(self, claim: UUID) -> None:
        self.made.add(claim)
        if self.random.random() < 0.8:
            places = self._grant(claim, ready=True)
            self.mail.append(ClaimGranted(run_id=self.policy.run_id, claim_id=claim, placements=places, ready=True))
        else:
            self.holding[claim] = {node for node in self.holding[claim] if self.random.random() < 0.5}
            self.mail.append(
                ClaimFailed(run_id=self.policy.run_id, claim_id=claim, at=self.now, message="no offer")
            )

    def _grant_waiting(self) -> None:
        claim = self.random.choice(sorted(self.waiting))
        self.waiting.discard(claim)
        places = self._grant(claim, ready=True)
        self.mail.append(ClaimGranted(run_id=self.policy.run_id, claim_id=claim, placements=places, ready=True))

    def _end(self, job: Running) -> None:
        reason = job.stopped.reason if job.stopped and self.random.random() < 0.8 else job.result
        job.ended = True
        self.holding.get(job.claim, set()).discard(job.node)
        self.mail.append(
            JobEnded(
                run_id=self.policy.run_id,
                replica=job.replica,
                node=job.node,
                submission=job.submission,
                status=JOB_REASONS[reason].status,
                reason=reason,
                exit_status=0 if reason is JobReason.DONE_BY_RUNNER else 1,
                at=self.now,
            )
        )

    # --- at rest --------------------------------------------------------------------------------------------------

    def check_at_rest(self) -> None:
        assert self.closed is not None, "the run never ended"
        assert not [job for job in self.jobs if not job.ended], "a job outlived its run"
        assert not any(self.holding.values()), "a claim still holds a block"
        assert not self.waiting, "a claim still waits"
        if self.closed.status is RunStatus.DONE and self.policy.stop_criteria is StopCriteria.ALL_DONE:
            last = max(job.submission for job in self.jobs)
            ends = [job for job in self.jobs if job.submission == last]
            assert len(ends) == self.policy.nodes, "DONE, though not every node ran"


def _uuid(rng: random.Random) -> UUID:
    return UUID(int=rng.getrandbits(128), version=4)


def policy(rng: random.Random) -> RunPolicy:
    retry = None
    if rng.random() < 0.6:
        events = tuple(event for event in RetryEvent if rng.random() < 0.7) or (RetryEvent.ERROR,)
        retry = Retry(on=events, duration=rng.choice((0, 30, 3600)), max_attempts=rng.choice((None, 0, 1, 3)))
    return RunPolicy(
        run_id=_uuid(rng),
        project="main",
        name="sim",
        submitted_at=START,
        nodes=rng.choice((1, 1, 2, 3, 4)),
        startup_order=rng.choice(list(StartupOrder)),
        stop_criteria=rng.choice(list(StopCriteria)),
        retry=retry,
    )


def play(seed: int, *, steps: int = 400) -> World:
    """One random life of a run, to its end."""
    rng = random.Random(seed)
    world = World(policy(rng), rng)
    world.capacity_chance = rng.choice((0.0, 0.3, 0.8, 1.0))
    world.failure_chance = rng.choice((0.0, 0.2, 0.6))
    stop_at = rng.choice((None, rng.randrange(60)))
    abort_at = rng.choice((None, rng.randrange(80)))
    for step in range(steps):
        if step == stop_at:
            world.mail.append(StopWanted())
        if step == abort_at:
            world.mail.append(StopWanted(abort=True))
        if step == steps - 100:
            world.mail.append(StopWanted())
        world.happen()
        world.think()
        if world.closed:
            break
    return world
