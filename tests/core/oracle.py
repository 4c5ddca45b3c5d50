"""What must hold in every life of a run, checked after each step, from what was heard and done, not from the rules.

The numbers are those of DESIGN's invariants that concern the core:

3. a stop ends the run within its bound, from any state, and frees every claim;
5. a retry window begins at the event that the docs name, and is used in full; pauses are exact;
9. news of another submission, claim or run changes nothing (``simulation`` sends a lot of it);
11. no command is given twice, and the state stays small: history is bounded by what happens, not by time.

And of its rules: an end that we caused is never a success, a finished job never runs again, all nodes or none.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from perdure.core import run as core
from perdure.core.run import state as happened
from perdure.model.events import ClaimFailed, JobEnded, JobReported, StopWanted
from perdure.model.statuses import (
    JOB_REASONS,
    ClaimStatus,
    JobReason,
    JobStatus,
    RetryEvent,
    RunReason,
    RunStatus,
    StopCriteria,
)
from tests.core.minutes import page

if TYPE_CHECKING:
    from tests.core.world import World

SLACK = timedelta(seconds=150)
"""Of a stop: news that is late, and a handful of commands one after another."""

FAILED_CLAIM = (ClaimStatus.REFUSED, ClaimStatus.FAILED, ClaimStatus.RELEASED)


class Oracle:
    def __init__(self, world: World, *, bounded: bool = True):
        """``bounded``: time passes as it does, so that a stop's bound can be checked."""
        self.bounded = bounded
        self.world = world
        self.policy = world.policy
        self.stop_heard: datetime | None = None
        self.abort_heard: datetime | None = None
        self.forgets()

    def forgets(self) -> None:
        """A reset: the run begins anew, and so does what is expected of it."""
        self.given_keys: set[str] = set()
        self.claim_failures: dict[UUID, set[datetime]] = {}
        self.ends: dict[tuple[int, int], dict[int, JobEnded]] = {}
        state = self.world.state
        self.base = state.calendar.seen if state.calendar else None
        self.ran = self.skipped = self.dropped = 0
        self.begun = state.calendar.count if state.calendar else 0
        self.occurrence_stop: datetime | None = None
        self.rests = {it.num: it.pauses for it in self.world.state.replicas}
        self.clocks = {it.num: it.clock for it in self.world.state.replicas}

    # --- what the run hears ---------------------------------------------------------------------------------------

    def hears(self, event: core.Event) -> None:
        match event:
            case StopWanted() if event.occurrence:
                if not self.world.state.idle and self.world.state.calendar:
                    self.occurrence_stop = self.occurrence_stop or self.world.now
            case happened.CalendarRead():
                self._reads(event)
            case StopWanted():
                self.stop_heard = self.stop_heard or self.world.now
                if event.abort:
                    self.abort_heard = self.abort_heard or self.world.now
            case ClaimFailed():
                self.claim_failures.setdefault(event.claim_id, set()).add(event.at)
            case happened.Placed():
                answer = event.answer
                partial = answer.status.holds and len(answer.placements) < self.policy.nodes
                if answer.status in FAILED_CLAIM or partial:
                    self.claim_failures.setdefault(event.claim_id, set()).add(event.at)
                self._know(event.known)
            case happened.Started() | happened.Stopped():
                self._know(event.known)
            case JobEnded() | JobReported():
                self._know((event,))
            case _:
                pass

    def _reads(self, event: happened.CalendarRead) -> None:
        self.given_keys.discard(event.question.key)
        calendar = self.world.state.calendar
        assert calendar is not None and calendar.occurrence is None, "the calendar is read while something runs"
        if event.question.since == calendar.seen:
            due = not event.question.why and event.page.count > 0
            self.skipped += event.page.count - due

    def _know(self, news: tuple[JobReported | JobEnded, ...]) -> None:
        for event in news:
            ran = event.status is JobStatus.RUNNING
            if isinstance(event, JobEnded):
                self.ends.setdefault((event.replica, event.submission), {}).setdefault(event.node, event)
                ran = event.exit_status is not None
            if ran and self.world.state.replicas[event.replica].submission == event.submission:
                self.rests[event.replica] = 0

    # --- what the run does ----------------------------------------------------------------------------------------

    def given(self, command: core.Command) -> None:
        if isinstance(command, core.Close):
            self._closes(command)
            return
        assert command.key not in self.given_keys, f"a command was given twice: {command.key}"
        self.given_keys.add(command.key)
        match command:
            case core.PlaceReplica():
                waits = self._waits() and self.world.now < self._window_end(command.replica)
                assert command.wait == waits, "a claim queues exactly while its window is open"
                known = command.claim_id in self.world.claims
                assert self.stop_heard is None or known, "a claim was made after a stop"
            case core.StartJob():
                self._starts(command)
            case core.StopJob():
                assert command.reason is not JobReason.DONE_BY_RUNNER, "an end we cause is no success"
            case _:
                pass

    def _starts(self, command: core.StartJob) -> None:
        world, key = self.world, (command.replica, command.node, command.submission)
        known = world.jobs.get(key)
        assert self.stop_heard is None and self.occurrence_stop is None, "a job was started after a stop"
        assert known is None or known.end is None, "a finished job was started"
        older = [job for job in world.jobs.values() if job.replica == command.replica and key[2] != job.submission]
        assert all(job.end for job in older), "two submissions of a replica run at once"
        last = [job for job in older if job.submission == command.submission - 1]
        again = self.policy.schedule is None and last and all(job.status is JobStatus.DONE for job in last)
        assert not again, "a finished replica is run again"
        assert len(command.addresses) == self.policy.nodes, "not all nodes are ready"

    def saw(self, before: core.RunState, decision: core.Decision) -> None:
        """After each turn: ``before`` is the state with all that was heard, and nothing decided yet."""
        now, state = self.world.now, self.world.state
        core.view(state)
        if state.calendar is not None and before.calendar is not None:
            ran = self.ran
            due = before.calendar.due is not None and state.calendar.due is None
            if state.calendar.count != self.begun:
                self._begins(state, state.calendar)
                before = state
            self.dropped += due and self.ran == ran
        if self.stop_heard is not None:
            assert state.ending is not None, "a stop was not heeded at once"
        if state.ending is not None:
            if before.ending is None:
                self._ends(before, state.ending)
            return
        wake = decision.wake_at
        for old, new in zip(before.replicas, state.replicas, strict=True):
            if (old.submission, old.attempt) != (new.submission, new.attempt):
                self._rests(old, new)
            if new.phase is happened.Phase.RESTING:
                assert new.not_before is not None and new.not_before > now, "a pause is over, and nothing happens"
                assert wake is not None and wake <= new.not_before, "nobody wakes at the end of a pause"
            if new.phase is happened.Phase.WAITING and self._waits():
                end = self._window_end(new.num)
                assert now < end and wake is not None and wake <= end, "the window is over, and it still waits"
            if new.phase is happened.Phase.LIVE and new.failure is None:
                assert not any(job.over and job.status is not JobStatus.DONE for job in new.jobs), (
                    "unheeded failure"
                )

    def _begins(self, state: core.RunState, calendar: happened.Calendar) -> None:
        """An occurrence: alone, and its slot is one that had not run."""
        assert calendar.count == self.begun + 1, "two occurrences at once"
        assert all(job.end for job in self.world.jobs.values()), "occurrences overlap"
        assert self.stop_heard is None, "an occurrence began after a stop"
        assert calendar.occurrence is not None
        slot = not calendar.occurrence.words.startswith("triggered")
        assert not (slot and calendar.paused), "a slot ran while the schedule was paused"
        self.ran += slot
        self.begun, self.occurrence_stop = calendar.count, None
        for replica in state.replicas:
            self.rests[replica.num], self.clocks[replica.num] = 0, self.world.now
            assert replica.clock == self.world.now, "the window does not begin with the occurrence"

    def _rests(self, old: happened.Replica, new: happened.Replica) -> None:
        """A pause began: it is of the right length, from a failure that was heard."""
        run, now = self.policy, self.world.now
        assert run.retry is not None, "tried again without retry"
        pauses = run.retry.backoff or run.timing.retry_backoff
        pause = timedelta(seconds=pauses[min(self.rests[old.num], len(pauses) - 1)])
        self.rests[old.num] += 1
        times: set[datetime] = set()
        if new.submission == old.submission:
            claim = self.world.state.claim_of(old)
            times = {min(at + pause, self._window_end(old.num)) for at in self.claim_failures.get(claim, ())}
        else:
            ends = self.ends[(old.num, old.submission)].values()
            failures = {end.at for end in ends if JOB_REASONS[end.reason].retry in run.retry.on}
            times = {min(at + pause, at + timedelta(seconds=run.retry.duration)) for at in failures}
            assert new.clock in failures, "the window does not begin at a failure"
            self.clocks[old.num] = new.clock
        if new.not_before is None:
            assert any(time <= now for time in times), f"the pause was cut short: {now} is before {times}"
        else:
            assert new.not_before in times, f"the pause ends at {new.not_before}, not at {times}"

    # --- how it ends ----------------------------------------------------------------------------------------------

    def _ends(self, before: core.RunState, reason: RunReason) -> None:
        """The verdict is the right one for what has been heard."""
        if self.occurrence_stop is not None and self.stop_heard is None:
            assert reason in (RunReason.STOPPED_BY_USER, RunReason.ABORTED_BY_USER), f"a stop beats {reason.value}"
            return
        if self.stop_heard is not None:
            wanted = {RunReason.ABORTED_BY_USER if self.abort_heard else RunReason.STOPPED_BY_USER}
            if self.occurrence_stop is not None:
                wanted.add(RunReason.ABORTED_BY_USER)  # its occurrence may have been aborted before
            assert reason in wanted, f"a stop beats {reason.value}"
            return
        match reason:
            case RunReason.ALL_JOBS_DONE:
                master = self.policy.stop_criteria is StopCriteria.MASTER_DONE
                ends = [self.ends.get((it.num, it.submission), {}) for it in before.replicas]
                done = [{node for node, end in of.items() if end.status is JobStatus.DONE} for of in ends]
                all_done = all(len(nodes) == self.policy.nodes for nodes in done)
                assert all_done or (master and any(0 in nodes for nodes in done)), "done, and not all is done"
            case RunReason.JOB_FAILED:
                assert any(self._final(it) for it in before.replicas), "failed, and nothing says so"
            case RunReason.RETRY_LIMIT_EXCEEDED:
                assert any(self._used_up(it) for it in before.replicas), "gave up, and could have tried again"
            case _:
                raise AssertionError(f"an end that nobody asked for: {reason.value}")

    def _final(self, replica: happened.Replica) -> bool:
        """Something failed in a way that ``retry`` does not cover."""
        retry = self.policy.retry
        if self.claim_failures.get(self.world.state.claim_of(replica)) and not self._waits():
            return True
        for end in self.ends.get((replica.num, replica.submission), {}).values():
            event = JOB_REASONS[end.reason].retry
            if end.status is JobStatus.DONE:
                continue
            if retry is None or event not in retry.on:
                return True
            codes, status = retry.on_exit_codes, end.exit_status
            if codes and status is not None and not any(low <= status <= high for low, high in codes):
                return True
        return False

    def _used_up(self, replica: happened.Replica) -> bool:
        retry = self.policy.retry
        assert retry is not None, "nothing to use up"
        claim = self.claim_failures.get(self.world.state.claim_of(replica), set())
        end = self._window_end(replica.num)
        if self._waits() and (any(at >= end for at in claim) or self.world.now >= end):
            return True
        if not any(
            it.status is JobStatus.FAILED for it in self.ends.get((replica.num, replica.submission), {}).values()
        ):
            return False
        return retry.duration == 0 or retry.max_attempts == replica.submission - replica.first + 1

    def _closes(self, close: core.Close) -> None:
        now, run = self.world.now, self.policy
        stopped = close.reason in (RunReason.STOPPED_BY_USER, RunReason.ABORTED_BY_USER)
        assert (close.status is RunStatus.TERMINATED) == stopped
        if not self.bounded:
            return
        if self.abort_heard is not None:
            bound = timedelta(seconds=run.timing.abort_bound)
            assert now - self.abort_heard <= bound + SLACK, f"an abort took {now - self.abort_heard}"
        if self.stop_heard is not None:
            bound = timedelta(seconds=run.stop_duration or 10)
            assert now - self.stop_heard <= bound + SLACK, f"a stop took {now - self.stop_heard}"

    # --- at rest --------------------------------------------------------------------------------------------------

    def at_rest(self) -> None:
        """Once the run has closed: it has, and nothing is left of it."""
        world = self.world
        assert world.closed is not None, "the run never ended"
        assert all(job.end for job in world.jobs.values()), "a job outlived its run"
        for claim in world.claims.values():
            assert not claim.places, "a claim still holds a block"
            assert claim.status is not ClaimStatus.WAITING, "a claim still waits"
        if self.policy.schedule is not None:
            self._slots_are_told()
        if world.closed.status is RunStatus.DONE and self.policy.stop_criteria is StopCriteria.ALL_DONE:
            for replica in range(self.policy.replicas):
                last = max(job.submission for job in world.jobs.values() if job.replica == replica)
                ends = [job for job in world.jobs.values() if (job.replica, job.submission) == (replica, last)]
                assert [job.status for job in ends] == [JobStatus.DONE] * self.policy.nodes, "DONE, and not all ran"

    def _slots_are_told(self) -> None:
        """Each slot ran once, or is noted as skipped; but one that came together with the stop."""
        schedule, calendar = self.policy.schedule, self.world.state.calendar
        assert schedule is not None and calendar is not None and self.base is not None
        found = page(schedule, self.base, calendar.seen).count
        told = self.ran + self.skipped + self.dropped + (calendar.due is not None)
        assert found == told, f"{found} slots, and {told} are told of"

    def survives_the_wire(self) -> None:
        text = self.world.state.model_dump_json()
        assert core.RunState.model_validate_json(text) == self.world.state, "written and read, it is another state"
        assert len(text) < 4000 + 2500 * self.policy.nodes * self.policy.replicas, f"it grows: {len(text)}"

    def _waits(self) -> bool:
        return self.policy.retry is not None and RetryEvent.NO_CAPACITY in self.policy.retry.on

    def _window_end(self, replica: int) -> datetime:
        assert self.policy.retry is not None
        return self.clocks[replica] + timedelta(seconds=self.policy.retry.duration)
