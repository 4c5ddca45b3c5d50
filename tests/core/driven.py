"""A run driven by hand, for rules one by one."""

from __future__ import annotations

from datetime import timedelta

from perdure.core import run as core
from perdure.core.run import state as happened
from perdure.model.events import JobEnded, JobReported, Placement
from perdure.model.messages import ClaimAnswer
from perdure.model.policy import Retry, RunPolicy
from perdure.model.statuses import JOB_REASONS, ClaimStatus, JobReason, JobStatus, RetryEvent
from tests.core.simulation import START


class Run:
    """A run driven by hand."""

    def __init__(self, **policy: object):
        values = {"project": "main", "name": "r", "submitted_at": START, **policy}
        self.policy = RunPolicy(run_id="00000000-0000-4000-8000-000000000001", **values)  # type: ignore[arg-type]
        self.now = START
        self.state = core.new_run(self.policy)
        self.commands: list[core.Command] = []
        self.settle()

    def settle(self) -> list[core.Command]:
        self.state, decision = core.settle(self.state, self.now)
        self.wake_at = decision.wake_at
        self.commands = list(decision.commands)
        return self.commands

    def happen(self, *events: core.Event) -> list[core.Command]:
        for event in events:
            self.state = core.apply(self.state, event)
        return self.settle()

    def wait(self, seconds: float) -> list[core.Command]:
        self.now += timedelta(seconds=seconds)
        return self.settle()

    @property
    def replica(self) -> happened.Replica:
        return self.state.replicas[0]

    @property
    def claim(self):
        return self.state.claim_of(self.replica)

    def places(self) -> tuple[Placement, ...]:
        return tuple(
            Placement(
                node=node, instance_id=f"00000000-0000-4000-8000-0000000001{node:02}", address=f"127.0.0.{node}"
            )
            for node in range(self.policy.nodes)
        )

    def ready(self) -> list[core.Command]:
        answer = ClaimAnswer(status=ClaimStatus.READY, placements=self.places())
        commands = self.happen(happened.Placed(claim_id=self.claim, answer=answer, at=self.now))
        return self.start(commands)

    def start(self, commands: list[core.Command]) -> list[core.Command]:
        """Let the jobs that were to be started start, and all that follow from that."""
        starts = [command for command in commands if isinstance(command, core.StartJob)]
        done = list(starts)
        for command in starts:
            more = self.happen(
                happened.Started(replica=0, node=command.node, submission=command.submission, key=command.key),
                self.reported(command.node),
            )
            done += self.start(more)
        return done

    def reported(self, node: int, status: JobStatus = JobStatus.RUNNING) -> JobReported:
        return JobReported(
            run_id=self.policy.run_id,
            replica=0,
            node=node,
            submission=self.replica.submission,
            status=status,
            at=self.now,
        )

    def ended(
        self,
        node: int,
        reason: JobReason = JobReason.DONE_BY_RUNNER,
        submission: int | None = None,
        exit_status: int | None = None,
    ) -> JobEnded:
        return JobEnded(
            run_id=self.policy.run_id,
            replica=0,
            node=node,
            submission=self.replica.submission if submission is None else submission,
            status=JOB_REASONS[reason].status,
            reason=reason,
            exit_status=exit_status,
            at=self.now,
        )


def only(commands: list[core.Command], kind: type) -> list:
    assert all(isinstance(command, kind) for command in commands), commands
    return commands


ERROR = JobReason.CONTAINER_EXITED_WITH_ERROR
ALL_RETRY = Retry(on=tuple(RetryEvent))
