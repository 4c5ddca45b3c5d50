"""A run with a schedule: what begins when, what does not, and what is said of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import takewhile

import pytest

from perdure.core import run as core
from perdure.core.run import state as happened
from perdure.core.slots import page, slots
from perdure.model.events import PauseWanted, StopWanted, TriggerWanted
from perdure.model.messages import ClaimAnswer, Progress
from perdure.model.policy import Retry, Schedule
from perdure.model.statuses import ClaimStatus, JobReason, RetryEvent, RunReason, RunStatus
from tests.core.driven import ERROR, Run, only
from tests.core.simulation import START

HOURLY = Schedule(cron=("0 * * * *",))
HOUR = 3600.0


class Scheduled(Run):
    """A run whose calendar is read at once, as Postgres' clock and cron say."""

    def settle(self) -> list[core.Command]:
        given: list[core.Command] = []
        while True:
            reads = []
            for command in super().settle():
                (reads if isinstance(command, core.ReadCalendar) else given).append(command)
            if not reads:
                self.commands = given
                return given
            [question] = reads
            answer = page(self.policy.schedule, question.since, question.until)
            self.state = core.apply(self.state, happened.CalendarRead(question=question, page=answer, at=self.now))

    def told(self) -> list[str]:
        """What has been noted, and is now written."""
        notes = [note.text for note in self.state.notes]
        self.state = core.apply(self.state, happened.Noted(number=self.state.noted))
        return notes

    def finish(self, reason: JobReason = JobReason.DONE_BY_RUNNER, exit_status: int = 0) -> list[core.Command]:
        return self.happen(self.ended(0, reason, exit_status=exit_status))

    @property
    def status(self) -> RunStatus:
        return core.view(self.state).status


def test_it_waits_for_its_first_slot_and_says_when_that_is() -> None:
    run = Scheduled(schedule=HOURLY)
    assert run.commands == []
    assert run.wake_at == START + timedelta(hours=1)
    view = core.view(run.state)
    assert (view.status, view.message) == (RunStatus.PENDING, "next at Thu 2026-01-01 01:00 UTC")
    assert run.wait(HOUR - 1) == []
    only(run.wait(1), core.PlaceReplica)
    assert run.told() == ["occurrence 1 began: Thu 2026-01-01 01:00 UTC"]


def test_each_occurrence_is_a_submission_of_its_own_and_the_run_waits_in_between() -> None:
    run = Scheduled(schedule=HOURLY)
    for number in range(3):
        [place] = only(run.wait(HOUR), core.PlaceReplica)
        assert place.submission == number
        run.ready()
        assert run.status is RunStatus.RUNNING
        assert run.finish() == []
        assert run.status is RunStatus.PENDING
    assert core.view(run.state).message == "next at Thu 2026-01-01 04:00 UTC; the last one: done"


def test_an_occurrence_that_failed_leaves_the_schedule() -> None:
    run = Scheduled(schedule=HOURLY)
    run.wait(HOUR)
    run.ready()
    assert run.finish(ERROR, 3) == []
    assert run.told()[-1] == "occurrence 1 ended: failed: node 0 exited with status 3"
    only(run.wait(HOUR), core.PlaceReplica)


def test_the_window_of_a_retry_begins_when_the_occurrence_does() -> None:
    run = Scheduled(schedule=HOURLY, retry=Retry(on=(RetryEvent.NO_CAPACITY,), duration=100))
    [place] = only(run.wait(HOUR), core.PlaceReplica)
    assert place.wait
    waiting = ClaimAnswer(status=ClaimStatus.WAITING, message="full")
    assert run.happen(happened.Placed(claim_id=run.claim, answer=waiting, at=run.now)) == []
    assert run.wait(99) == []
    [withdraw] = only(run.wait(1), core.WithdrawClaim)
    assert run.happen(happened.Withdrawn(claim_id=withdraw.claim_id, key=withdraw.key)) == []
    assert run.told()[-1] == "occurrence 1 ended: failed: the no-capacity window of 1m40s is over: full"


def test_attempts_are_counted_in_each_occurrence() -> None:
    run = Scheduled(schedule=HOURLY, retry=Retry(on=(RetryEvent.ERROR,), max_attempts=2))
    for number in (1, 2):
        run.wait(HOUR)
        run.ready()
        run.finish(ERROR, 1)
        run.wait(15)
        run.ready()
        run.finish(ERROR, 1)
        words = f"occurrence {number} ended: failed: gave up after 2 tries: node 0 exited with status 1"
        assert run.told()[-1] == words


def test_occurrences_never_overlap_and_slots_meanwhile_are_noted() -> None:
    run = Scheduled(schedule=HOURLY)
    run.wait(HOUR)
    run.ready()
    assert run.wake_at is None, "a long occurrence costs nothing"
    assert run.wait(2.5 * HOUR) == []
    run.told()
    assert run.finish() == []
    assert run.told() == [
        "occurrence 1 ended: done",
        "skipped 2 times from Thu 2026-01-01 02:00 UTC on: occurrence 1 was still under way",
    ]
    assert run.wait(0.5 * HOUR - 1) == []
    only(run.wait(1), core.PlaceReplica)


def test_of_slots_that_nobody_was_there_to_start_the_latest_runs_late() -> None:
    run = Scheduled(schedule=HOURLY)
    only(run.wait(5.5 * HOUR), core.PlaceReplica)
    assert run.told() == [
        "skipped 4 times from Thu 2026-01-01 01:00 UTC on: nobody was there to start it",
        "occurrence 1 began: Thu 2026-01-01 05:00 UTC",
    ]
    run.ready()
    run.finish()
    assert run.wake_at == START + timedelta(hours=6)


def test_slots_after_an_end_that_was_heard_late_were_missed_not_overlapped() -> None:
    run = Scheduled(schedule=HOURLY)
    run.wait(HOUR)
    run.ready()
    run.told()
    end = run.ended(0).but(at=run.now + timedelta(hours=1.5))
    run.now += timedelta(hours=4.5)
    only(run.happen(end), core.PlaceReplica)
    assert run.told() == [
        "occurrence 1 ended: done",
        "skipped Thu 2026-01-01 02:00 UTC: occurrence 1 was still under way",
        "skipped 2 times from Thu 2026-01-01 03:00 UTC on: nobody was there to start it",
        "occurrence 2 began: Thu 2026-01-01 05:00 UTC",
    ]


def test_a_schedule_that_never_ran_has_missed_nothing_before_it_was_made() -> None:
    run = Scheduled(schedule=Schedule(cron=("0 9 * * *",)), submitted_at=START.replace(hour=10, minute=5))
    run.now = START.replace(hour=10, minute=10)
    assert run.settle() == []
    assert run.told() == []


def test_a_stop_ends_the_schedule_while_it_waits() -> None:
    run = Scheduled(schedule=HOURLY)
    [close] = run.happen(StopWanted())
    assert (close.status, close.reason) == (RunStatus.TERMINATED, RunReason.STOPPED_BY_USER)


@pytest.mark.parametrize("abort", [False, True])
def test_a_stop_ends_the_occurrence_and_the_schedule(abort: bool) -> None:
    run = Scheduled(schedule=HOURLY)
    run.wait(HOUR)
    run.ready()
    [stop] = only(run.happen(StopWanted(abort=abort)), core.StopJob)
    run.happen(happened.Stopped(key=stop.key))
    [close] = run.finish(stop.reason)
    assert close.status is RunStatus.TERMINATED
    assert close.reason is (RunReason.ABORTED_BY_USER if abort else RunReason.STOPPED_BY_USER)


@pytest.mark.parametrize("abort", [False, True])
def test_a_stop_of_the_occurrence_leaves_the_schedule(abort: bool) -> None:
    run = Scheduled(schedule=HOURLY)
    run.wait(HOUR)
    run.ready()
    [stop] = only(run.happen(StopWanted(occurrence=True, abort=abort)), core.StopJob)
    assert stop.abort == abort
    run.happen(happened.Stopped(key=stop.key))
    assert run.finish(stop.reason) == []
    assert run.told()[-1] == "occurrence 1 ended: terminated"
    only(run.wait(HOUR), core.PlaceReplica)


def test_a_stop_says_by_whom_and_each_says_its_own() -> None:
    run = Scheduled(schedule=HOURLY)
    run.wait(HOUR)
    run.ready()
    [stop] = only(run.happen(StopWanted(occurrence=True, by="ann")), core.StopJob)
    assert core.view(run.state).message == "stopped by ann"
    assert stop.message == ""
    run.happen(happened.Stopped(key=stop.key))
    run.happen(StopWanted(by="bob"))
    run.happen(StopWanted(by="eve"))
    [close] = run.finish(stop.reason)
    assert run.told()[-1] == "occurrence 1 ended: terminated: stopped by ann"
    assert close.message == "stopped by bob"


def test_an_abort_says_by_whom() -> None:
    run = Run()
    run.ready()
    run.happen(StopWanted(by="ann"))
    run.happen(StopWanted(by="bob", abort=True))
    view = core.view(run.state)
    assert (view.reason, view.message) == (RunReason.ABORTED_BY_USER, "aborted by bob")


def test_an_abort_of_the_occurrence_follows_its_stop() -> None:
    run = Scheduled(schedule=HOURLY)
    run.wait(HOUR)
    run.ready()
    [stop] = run.happen(StopWanted(occurrence=True))
    run.happen(happened.Stopped(key=stop.key))
    [abort] = only(run.happen(StopWanted(occurrence=True, abort=True)), core.StopJob)
    assert abort.abort


def test_a_stop_of_an_occurrence_that_is_not_there_changes_nothing() -> None:
    run = Scheduled(schedule=HOURLY)
    assert run.happen(StopWanted(occurrence=True)) == []
    only(run.wait(HOUR), core.PlaceReplica)
    plain = Run()
    plain.ready()
    assert plain.happen(StopWanted(occurrence=True)) == []


def test_a_trigger_begins_an_occurrence_at_once_and_the_slots_stay() -> None:
    run = Scheduled(schedule=HOURLY)
    run.wait(600)
    only(run.happen(TriggerWanted(by="ann", at=run.now)), core.PlaceReplica)
    assert run.told() == ["occurrence 1 began: triggered by ann"]
    run.ready()
    run.finish()
    only(run.wait(3000), core.PlaceReplica)


def test_a_trigger_while_one_is_under_way_is_refused() -> None:
    run = Scheduled(schedule=HOURLY)
    run.wait(HOUR)
    run.ready()
    run.told()
    assert run.happen(TriggerWanted(by="ann", at=run.now)) == []
    assert run.told() == ["not triggered by ann: occurrence 1 was still under way"]
    run.finish()
    assert run.status is RunStatus.PENDING


def test_a_trigger_at_the_time_of_a_slot_is_one_occurrence() -> None:
    run = Scheduled(schedule=HOURLY)
    run.now += timedelta(hours=1)
    [place] = only(run.happen(TriggerWanted(by="ann", at=run.now)), core.PlaceReplica)
    assert place.submission == 0
    run.ready()
    run.finish()
    assert "skipped Thu 2026-01-01 01:00 UTC: occurrence 1 was still under way" in run.told()
    assert run.wake_at == START + timedelta(hours=2)


def test_nothing_begins_while_it_is_paused_and_what_was_skipped_is_noted() -> None:
    run = Scheduled(schedule=HOURLY)
    run.wait(600)
    assert run.happen(PauseWanted(on=True, by="ann", at=run.now)) == []
    assert core.view(run.state).message == "paused"
    assert run.wake_at is None, "a long pause costs nothing"
    assert run.wait(3 * HOUR) == []
    assert run.happen(PauseWanted(on=False, by="bob", at=run.now)) == []
    assert run.told() == [
        "paused by ann",
        "resumed by bob",
        "skipped 3 times from Thu 2026-01-01 01:00 UTC on: the schedule was paused",
    ]
    only(run.wait(3000), core.PlaceReplica)


def test_a_paused_schedule_can_be_triggered() -> None:
    run = Scheduled(schedule=HOURLY)
    run.happen(PauseWanted(on=True, at=run.now))
    only(run.happen(TriggerWanted(at=run.now)), core.PlaceReplica)
    run.ready()
    assert run.finish() == []
    assert run.wait(HOUR) == []


def test_an_occurrence_goes_on_when_its_schedule_is_paused() -> None:
    run = Scheduled(schedule=HOURLY)
    run.wait(HOUR)
    run.ready()
    assert run.happen(PauseWanted(on=True, at=run.now)) == []
    assert run.finish() == []
    assert run.wait(2 * HOUR) == []


def test_an_answer_of_the_calendar_that_comes_twice_changes_nothing() -> None:
    run = Run(schedule=HOURLY)
    [question] = only(run.commands, core.ReadCalendar)
    answer = happened.CalendarRead(question=question, page=page(HOURLY, question.since, question.until), at=run.now)
    run.happen(answer)
    run.now += timedelta(hours=1)
    [second] = only(run.settle(), core.ReadCalendar)
    due = happened.CalendarRead(question=second, page=page(HOURLY, second.since, second.until), at=run.now)
    only(run.happen(due), core.PlaceReplica)
    before = run.state
    assert run.happen(due, answer) == []
    assert run.state == before


def test_triggers_and_pauses_mean_nothing_to_a_run_without_a_schedule() -> None:
    run = Run()
    before = run.state
    run.happen(TriggerWanted(at=START), PauseWanted(on=True, at=START), PauseWanted(on=False, at=START))
    assert run.state == before


def test_after_a_reset_the_latest_occurrence_is_looked_at_again_and_the_next_is_a_new_submission() -> None:
    run = Scheduled(schedule=HOURLY)
    run.now += timedelta(hours=7.5)
    run.state = core.new_run(run.policy, (Progress(replica=0, submission=6, attempt=0),), run.now)
    [place] = only(run.settle(), core.PlaceReplica)
    assert place.submission == 6
    released = ClaimAnswer(status=ClaimStatus.RELEASED, again=True)
    end = run.ended(0).but(at=START + timedelta(hours=7.1))
    run.happen(happened.Placed(claim_id=run.claim, answer=released, at=run.now, known=(end,)))
    assert run.status is RunStatus.PENDING
    [place] = only(run.wait(HOUR / 2), core.PlaceReplica)
    assert place.submission == 7


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"])
@pytest.mark.parametrize(
    ("cron", "minutes"),
    [("30 2 * * *", 10), ("30 1 * * *", 60 * 25), ("0 */6 * * *", 5), ("0 */4 * * *", 60 * 6)],
)
def test_a_year_across_dst_runs_every_slot_once_or_says_that_it_did_not(zone: str, cron: str, minutes: int) -> None:
    schedule = Schedule(cron=(cron,), timezone=zone)
    run = Scheduled(schedule=schedule)
    expected = list(takewhile(lambda slot: slot < START + timedelta(days=365), slots(schedule, START)))
    began: list[datetime] = []
    notes: list[str] = []
    while run.wake_at is not None and run.wake_at < START + timedelta(days=365):
        run.now = run.wake_at
        only(run.settle(), core.PlaceReplica)
        began.append(run.now)
        run.ready()
        run.wait(60 * minutes)
        run.finish()
        notes += run.told()
    skipped = [note for note in notes if note.startswith("skipped")]
    ran = set(began)
    assert began == sorted(ran) and ran <= set(expected)
    missing = [slot for slot in expected if slot < began[-1] and slot not in ran]
    assert len(skipped) - len(missing) in (0, 1), "a slot neither ran nor was noted"
    assert all("still under way" in note for note in skipped)
    if minutes < 60:
        assert began == expected and not skipped


def test_a_schedule_lives_for_years_in_a_small_state() -> None:
    run = Scheduled(schedule=Schedule(cron=("0 3 * * *",)))
    sizes: list[int] = []
    for _ in range(800):
        assert run.wake_at is not None
        run.now = run.wake_at
        run.settle()
        run.ready()
        run.finish()
        run.told()
        heard = happened.Heard(jobs=run.state.unheard)
        run.state = core.apply(run.state, heard)
        sizes.append(len(run.state.model_dump_json()))
    assert max(sizes) - min(sizes) < 100
    assert run.now.astimezone(UTC) > START + timedelta(days=799)
