"""The story of a run reads as somebody who was there would tell it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from perdure.core.story import Claim, Facts, Instance, Job, Place, tell
from perdure.model.api import Story
from perdure.model.policy import Retry, RunPolicy, Schedule
from perdure.model.resources import OfferFailure
from perdure.model.statuses import ClaimStatus, JobReason, JobStatus, RetryEvent, RunReason, RunStatus

T0 = datetime(2026, 11, 30, 10, 0, 0, tzinfo=UTC)
A, B = UUID(int=1), UUID(int=2)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def policy(**more: Any) -> RunPolicy:
    return RunPolicy(run_id=UUID(int=9), project="main", name="train", user="ann", submitted_at=T0, **more)


def claim(begin: float, moved: Mapping[str, float], *places: Place, submission: int = 0, **more: Any) -> Claim:
    times = {ClaimStatus(status): at(seconds) for status, seconds in moved.items()}
    status = list(times)[-1] if times else ClaimStatus.WAITING
    return Claim(0, submission, max(len(places), 1), status, at(begin), moved=times, places=places, **more)


def job(sent: float, ran: float | None = None, ended: float | None = None, **more: Any) -> Job:
    values: dict[str, Any] = {"replica": 0, "node": 0, "submission": 0, "instance": "pool-0"}
    values["status"] = JobStatus.RUNNING if ended is None else JobStatus.DONE
    values["reason"] = None if ended is None else JobReason.DONE_BY_RUNNER
    return Job(
        submitted_at=at(sent),
        started_at=None if ran is None else at(ran),
        ended_at=None if ended is None else at(ended),
        **values | more,
    )


FAILED = {"status": JobStatus.FAILED, "reason": JobReason.CONTAINER_EXITED_WITH_ERROR, "exit_status": 3}
FREE, MADE = Place(A, "pool-0", False), Place(B, "pool-1", True)


def lines(story: Story, attempt: int = 0) -> list[str]:
    return [line.text for line in story.attempts[attempt].lines]


def spells(story: Story, attempt: int = 0) -> dict[str, float]:
    return {spell.phase: spell.seconds for spell in story.attempts[attempt].spells}


def test_a_run_that_is_done():
    facts = Facts(
        policy(),
        RunStatus.DONE,
        RunReason.ALL_JOBS_DONE,
        ended_at=at(65),
        claims=(claim(0, {"ready": 0.1}, FREE),),
        jobs=(job(0.2, 1.2, 61),),
    )
    story = tell(facts, at(120))
    assert story.headline == "train is done: it ended 55 s ago, 65 s after it was submitted."
    assert story.beginning[0] == "ann submitted it as a task of 1 node."
    assert lines(story) == [
        "It asked for 1 instance, and at once got pool-0, which was free.",
        "It began to run on pool-0, 1.0 s after it was sent there.",
        "It finished, after it ran for 60 s.",
    ]
    assert story.next == ("Nothing: it has ended. What it printed: perdure logs train",)


def test_an_attempt_that_failed_says_why_and_when_the_next_one_came():
    facts = Facts(
        policy(retry=Retry(on=(RetryEvent.ERROR,), duration=600, max_attempts=2)),
        RunStatus.FAILED,
        RunReason.RETRY_LIMIT_EXCEEDED,
        "gave up after 2 tries: node 0 exited with status 3",
        ended_at=at(40),
        claims=(claim(0, {"ready": 0}, FREE), claim(20, {"ready": 20}, FREE, submission=1)),
        jobs=(job(0, 1, 5, **FAILED), job(20, 21, 40, submission=1, **FAILED)),
    )
    story = tell(facts, at(100))
    assert story.headline == (
        "train failed 60 s ago, 40 s after it was submitted and in 2 attempts:"
        " gave up after 2 tries: node 0 exited with status 3."
    )
    assert story.beginning[1] == "Its `retry` covers error, each for 10m, 2 attempts at most."
    assert lines(story)[-2:] == [
        "It exited with status 3, after it ran for 4.0 s.",
        "`retry` covers this: after 15 s it was tried again.",
    ]
    assert [it.submission for it in story.attempts] == [0, 1]


def test_the_phases_of_an_attempt_add_up():
    moved = {JobStatus.PULLING: at(33), JobStatus.RUNNING: at(63), JobStatus.TERMINATING: at(100)}
    facts = Facts(
        policy(),
        RunStatus.TERMINATED,
        ended_at=at(103),
        claims=(claim(0, {"waiting": 0, "granted": 10, "ready": 30}, MADE),),
        jobs=(job(30, 64, 103, moved=moved, status=JobStatus.TERMINATED, reason=JobReason.TERMINATED_BY_USER),),
    )
    story = tell(facts, at(500))
    assert spells(story) == {
        "waiting": 10,
        "getting ready": 20,
        "starting": 4,
        "pulling": 30,
        "running": 36,
        "ending": 3,
    }
    assert lines(story) == [
        "It asked for 1 instance, and had to wait: there was no capacity.",
        "After 10 s in the queue it was its turn: it got pool-1, which had to be made.",
        "It was ready 20 s later.",
        "Pulling its image took 30 s.",
        "It began to run on pool-0, 34 s after it was sent there.",
        "It was stopped, after it ran for 39 s.",
    ]


def test_a_run_that_waits_says_what_does_not_do_and_how_long_it_will():
    tried = (OfferFailure(offer="local cpu=2", why="has no GPUs, wanted 8."),)
    facts = Facts(
        policy(retry=Retry(on=(RetryEvent.NO_CAPACITY,), duration=1800)),
        RunStatus.SUBMITTED,
        message="waiting for capacity: no capacity; 1 more in `perdure run get train`",
        claims=(claim(0, {"waiting": 0}, tried=tried, ahead=2),),
    )
    story = tell(facts, at(60))
    assert story.headline == "train does not run yet, 60 s after it was submitted."
    assert lines(story) == [
        "It asked for 1 instance, and had to wait: there was no capacity; these offers did not do:"
        " local cpu=2: has no GPUs, wanted 8."
    ]
    assert story.attempts[0].spells[0].model_dump() == {"phase": "waiting", "seconds": 60, "over": False}
    assert story.next == (
        "It begins as soon as its capacity is free: it is in the queue, with 2 claims in front of it.",
        "It gives up in 29 min (10:30:00 UTC): `retry.duration` is 30m.",
    )


def test_a_run_that_found_no_capacity_says_that_it_could_have_waited():
    facts = Facts(
        policy(),
        RunStatus.FAILED,
        RunReason.JOB_FAILED,
        "no capacity for an instance",
        ended_at=at(0.1),
        claims=(claim(0, {"refused": 0.1}, message="no fleet is called x; there are: pool."),),
    )
    story = tell(facts, at(10))
    assert lines(story) == [
        "It asked for 1 instance, and there was no capacity: no fleet is called x; there are: pool."
    ]
    assert story.next == (
        "Nothing: it has ended, and nothing of it ran.",
        "With `retry: true` it would have waited for capacity.",
    )


def test_a_lost_instance_is_not_the_runs_own_fault():
    lost = {"status": JobStatus.FAILED, "reason": JobReason.INSTANCE_UNREACHABLE, "message": "no answer for 2 min"}
    facts = Facts(
        policy(retry=Retry(on=(RetryEvent.ERROR,))),
        RunStatus.PENDING,
        message="trying again at 10:02:00 UTC after: node 0 lost its instance",
        claims=(claim(0, {"ready": 0, "failed": 100}, FREE, message="no answer for 2 min"),),
        jobs=(job(0, 1, 100, **lost),),
    )
    story = tell(facts, at(110))
    assert lines(story)[-1] == (
        "It lost its instance: no answer for 2 min, after it ran for 99 s (its instance's fault, not its own)."
    )
    assert story.headline == "train failed, and is to be tried again; it was submitted 110 s ago."
    assert story.next == ("Trying again at 10:02:00 UTC after: node 0 lost its instance.",)


def test_offers_that_failed_while_an_instance_was_made_are_named_with_their_reasons():
    failures = tuple(OfferFailure(offer=f"p{number}", why="quota exceeded") for number in range(7))
    facts = Facts(
        policy(),
        RunStatus.FAILED,
        ended_at=at(20),
        claims=(claim(0, {"granted": 0, "failed": 20}, MADE, message="every offer failed"),),
        instances={B: Instance("pool-1", failures)},
    )
    told = lines(tell(facts, at(30)))
    named = "; ".join(f"p{number}: quota exceeded" for number in range(5))
    assert told[1] == f"To make pool-1: these offers did not do: {named}; and 2 more."
    assert told[2] == "An instance could not be had: every offer failed."


def test_the_nodes_of_a_gang_are_told_together_where_they_are_alike():
    ended = {"status": JobStatus.TERMINATED, "reason": JobReason.TERMINATED_BY_SERVER}
    facts = Facts(
        policy(nodes=3),
        RunStatus.FAILED,
        ended_at=at(12),
        claims=(claim(0, {"granted": 0, "ready": 2}, FREE, MADE, Place(B, "pool-2", True)),),
        jobs=(
            job(2, 3, 10, node=0, **FAILED),
            job(2, 4, 12, node=1, instance="pool-1", **ended),
            job(2, 3, 12, node=2, instance="pool-2", **ended),
        ),
    )
    assert lines(tell(facts, at(20))) == [
        "It asked for 3 instances, and at once got pool-0, which was free, and pool-1 and pool-2, which had to be"
        " made.",
        "All 3 were ready 2.0 s later.",
        "All 3 nodes began to run, 2.0 s after they were sent to pool-0, pool-1 and pool-2.",
        "Node 0 exited with status 3, after it ran for 7.0 s.",
        "Each of nodes 1 and 2 was stopped with its run, after it ran for 8.0 s or more.",
    ]


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (
            Facts(
                policy(),
                RunStatus.RUNNING,
                max_duration=3600,
                claims=(claim(0, {"ready": 0}, FREE),),
                jobs=(job(0, 10),),
            ),
            (
                "It runs until its commands have ended.",
                "Its `max_duration` of 1h is over in 59 min (11:00:10 UTC): it is stopped then.",
            ),
        ),
        (
            Facts(policy(), RunStatus.PROVISIONING, claims=(claim(0, {"granted": 0}, MADE),)),
            (
                "Its jobs start as soon as pool-1 can be reached.",
                "If that does not come to pass in 9 min (10:10:00 UTC), they are given up, and it is failed.",
            ),
        ),
        (
            Facts(
                policy(),
                RunStatus.PROVISIONING,
                claims=(claim(0, {"ready": 0}, FREE),),
                jobs=(job(0, status=JobStatus.PULLING),),
            ),
            ("It runs as soon as its image is pulled.",),
        ),
        (
            Facts(
                policy(),
                RunStatus.TERMINATING,
                RunReason.STOPPED_BY_USER,
                ending_at=at(10),
                claims=(claim(0, {"ready": 0}, FREE),),
                jobs=(job(0, 1, status=JobStatus.TERMINATING),),
            ),
            (
                "Its job has 10s from SIGTERM to SIGKILL.",
                "At the latest in 4 min (10:05:10 UTC) it is over: its `stop_duration` is 5m.",
            ),
        ),
        (Facts(policy(), RunStatus.SUBMITTED), ("Its claim of capacity comes first.",)),
        (
            Facts(policy(), RunStatus.RUNNING, superseded=True),
            ("Nothing: its workflow is gone, and the sweep gives back what it held.",),
        ),
    ],
)
def test_what_happens_next(facts: Facts, expected: tuple[str, ...]):
    assert tell(facts, at(20)).next == expected


def test_every_replica_is_told_by_itself():
    claims = tuple(Claim(num, 0, 1, ClaimStatus.READY, T0, moved={ClaimStatus.READY: T0}) for num in (0, 1))
    facts = Facts(policy(replicas=2), RunStatus.RUNNING, claims=claims, jobs=(job(0, 1), job(0, replica=1)))
    story = tell(facts, at(5))
    assert [attempt.replica for attempt in story.attempts] == [0, 1]
    assert story.next == (
        "Replica 0: It runs until its commands have ended.",
        "Replica 1: It runs in a moment.",
    )


HOURLY = Schedule(cron=("0 * * * *",), timezone="Europe/Berlin")


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (
            "next at Mon 2026-11-30 12:00 CET; the last one: done",
            "Its next occurrence begins Mon 2026-11-30 12:00 CET, in 50 min (11:00:00 UTC).",
        ),
        ("paused", "perdure run resume train"),
    ],
)
def test_a_run_with_a_schedule_says_when_it_happens_next(message: str, said: str):
    story = tell(Facts(policy(schedule=HOURLY), RunStatus.PENDING, message=message), at(600))
    assert story.headline == f"train waits for its schedule: {message}."
    assert said in " ".join(story.next)


def test_an_occurrence_that_runs_says_when_the_next_one_is():
    facts = Facts(
        policy(schedule=HOURLY), RunStatus.RUNNING, claims=(claim(0, {"ready": 0}, FREE),), jobs=(job(0, 1),)
    )
    assert tell(facts, at(600)).next[-1] == (
        "Then it waits for the next time of its schedule, Mon 2026-11-30 12:00 CET, unless that is paused."
    )


def test_a_pause_between_two_tries_of_an_occurrence_is_not_the_schedules():
    facts = Facts(policy(schedule=HOURLY), RunStatus.PENDING, message="trying again at 10:10:15 UTC after: x")
    assert tell(facts, at(600)).headline.startswith("train failed, and is to be tried again")
