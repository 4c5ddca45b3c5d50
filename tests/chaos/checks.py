"""The invariants of DESIGN section 10, of one soak: each with how often it was looked at, and what breaks it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

from perdure.model.api import JobRow
from perdure.model.statuses import JobReason, RunReason, RunStatus
from tests.chaos import jobs
from tests.chaos.evidence import Evidence, Story
from tests.chaos.plan import Kind, OnTerm

EVENTS_A_JOB, EVENTS_A_STOP = 100, 30
"""Of all histories of a run, for each of its jobs, and for each time a client stops it (invariant 11)."""

STOP_BOUND = 300.0
"""Seconds: ``stop_duration``, if a run does not say another."""

BY_ITSELF = (JobReason.DONE_BY_RUNNER, JobReason.CONTAINER_EXITED_WITH_ERROR)

_ENDS: dict[Kind, tuple[RunStatus, RunReason]] = {
    Kind.COUNTS: (RunStatus.DONE, RunReason.ALL_JOBS_DONE),
    Kind.CRASHES: (RunStatus.FAILED, RunReason.JOB_FAILED),
    Kind.RETRIES: (RunStatus.DONE, RunReason.ALL_JOBS_DONE),
    Kind.GIVES_UP: (RunStatus.FAILED, RunReason.RETRY_LIMIT_EXCEEDED),
    Kind.OVERRUNS: (RunStatus.FAILED, RunReason.JOB_FAILED),
}
_STOPS = (RunReason.STOPPED_BY_USER, RunReason.ABORTED_BY_USER)


@dataclass(frozen=True)
class Finding:
    words: str
    story: Story | None = None


@dataclass(frozen=True)
class Verdict:
    """One invariant: its number in DESIGN (0: of this soak), what was looked at, and what breaks it."""

    number: int
    invariant: str
    count: int
    what: str
    findings: tuple[Finding, ...]


def verdicts(evidence: Evidence) -> list[Verdict]:
    """All of them, in order."""
    record, stories = evidence.record, evidence.stories
    starts = [witness for story in stories for witness in story.witnesses.values()]
    ended = [job for story in stories for job in story.jobs]
    stops = [story for story in stories if story.entry.stopped]
    retries = [job for job in ended if job.submission > 0]
    logs = [log for story in stories for log in story.logs.values()]
    refused = [story for story in stories if story.entry.work.kind is Kind.REFUSED]
    doctor = [Finding(f"{check.invariant}: {finding}") for check in evidence.doctor for finding in check.findings]

    def each(check: Callable[[Story], Iterable[str]], of: Iterable[Story] = stories) -> tuple[Finding, ...]:
        return tuple(Finding(words, story) for story in of for words in check(story))

    def plain(findings: Iterable[str]) -> tuple[Finding, ...]:
        return tuple(Finding(words) for words in findings)

    return [
        Verdict(0, "every run ends as its work says", len(stories), "runs", each(_end)),
        Verdict(0, "whatever was killed comes back", len(record.kills), "kills", plain(record.not_back)),
        Verdict(0, "nothing that should have ended is left", len(ended), "jobs ended", plain(evidence.left)),
        Verdict(1, "provider, rows and workflows agree", len(evidence.doctor), "checks", tuple(doctor)),
        Verdict(2, "each node of each submission started once", len(starts), "starts", each(_starts)),
        Verdict(3, f"a stop ends a run within {STOP_BOUND:.0f} s", len(stops), "stops", each(_stop, stops)),
        Verdict(4, "blocks and fleets hold at every instant", record.samples, "looks", plain(record.at_an_instant)),
        Verdict(5, "a retry comes after its pause", len(retries), "retries", each(_pauses)),
        Verdict(
            6,
            "an end is decided once, and exit codes are true",
            len(record.ends),
            "ends",
            each(_exits) + plain(record.changed_ends),
        ),
        Verdict(
            7,
            "a log is what was printed, whole and in order",
            len(logs),
            f"logs, {sum(map(len, logs))} bytes",
            each(_logs),
        ),
        Verdict(9, "what starts is a job on record, on its node", len(starts), "starts", each(_identity)),
        Verdict(10, "a bad configuration is refused, alone", len(refused), "refusals", each(_refusal, refused)),
        Verdict(
            11, f"under {EVENTS_A_JOB} events a job", sum(it.events for it in stories), "events", each(_history)
        ),
        Verdict(
            12,
            "no secret's value is kept in the clear",
            evidence.searched,
            "files",
            plain(evidence.places_of_secrets) + each(_secret),
        ),
    ]


def _end(story: Story) -> Iterator[str]:
    """A kill of ours changes nothing about how, and after how many tries, a run ends."""
    entry, work, row = story.entry, story.entry.work, story.row
    if work.kind is Kind.REFUSED:
        return
    if row is None:
        yield "was taken, and is not on record"
        return
    if not entry.over:
        yield f"has not ended: {row.status} {row.message}"
        return
    tries = 1 + max((job.submission for job in row.jobs), default=0)
    planned = {Kind.RETRIES: work.failures + 1, Kind.GIVES_UP: work.failures}.get(work.kind, 1)
    if entry.stopped and row.status == RunStatus.TERMINATED and row.reason in _STOPS:
        if tries > planned:
            yield f"was tried {tries} times before it was stopped, and fails only {work.failures} times"
        return
    if work.kind is Kind.ENDLESS or (row.status, row.reason) != _ENDS[work.kind]:
        yield f"ended {row.status} ({row.reason}): {row.message}"
    elif tries != planned:
        yield f"was tried {tries} times, not {planned}"
    elif len(row.jobs) != planned * work.nodes:
        yield f"has {len(row.jobs)} jobs on record, not {planned} times {work.nodes}"


def _starts(story: Story) -> Iterator[str]:
    for witness in story.witnesses.values():
        if witness.starts != 1:
            yield f"node {witness.node}, {witness.job_id}, was started {witness.starts} times"
    for job in story.jobs:
        if job.reason in BY_ITSELF and job.job_id not in story.witnesses:
            yield f"{_words(job)} never started"


def _stop(story: Story) -> Iterator[str]:
    took = story.entry.ended_in
    if story.row is None or not RunStatus(story.row.status).final:
        yield "was stopped, and has not ended"
    elif took is not None and took > STOP_BOUND:
        yield f"ended {took:.0f} s after it was stopped"


def _pauses(story: Story) -> Iterator[str]:
    """Of the node that fails: the next try of a gang comes after the pause from then."""
    mine = sorted(
        (job for job in story.jobs if job.node == story.entry.work.failing_node), key=lambda job: job.submission
    )
    for before, after in pairwise(mine):
        if before.ended_at is None or after.submitted_at is None:
            yield f"{_words(before)} has no end, and was tried again"
        elif after.submitted_at < before.ended_at + timedelta(seconds=jobs.BACKOFF):
            yield f"{_words(before)} ended at {before.ended_at}, and was tried again at {after.submitted_at}"


def _exits(story: Story) -> Iterator[str]:
    """On record is the status with which it exited, and only of what exited by itself."""
    work = story.entry.work
    for job in story.jobs:
        witness = story.witnesses.get(job.job_id)
        exits = witness.exits if witness is not None else ()
        by_itself = job.reason in BY_ITSELF
        if by_itself and exits != (job.exit_status,):
            yield f"{_words(job)}: exit status {job.exit_status}, and exited with {exits}"
        if by_itself and (job.status == "done") != (job.exit_status == 0):
            yield f"{_words(job)}: exit status {job.exit_status}"
        if exits and exits[0] not in (0, work.code):
            yield f"{_words(job)}: exited with {exits}, and its work says {work.code}"


def _logs(story: Story) -> Iterator[str]:
    work = story.entry.work
    for job in story.jobs:
        witness, log = story.witnesses.get(job.job_id), story.logs.get(job.job_id, b"")
        least = witness.lines if witness is not None else 0
        whole = job.reason in BY_ITSELF
        aborted = job.reason == JobReason.ABORTED_BY_USER
        lines = log.count(b"\n") - (saved := work.on_term is OnTerm.SAVES and log.endswith(b" saved\n"))
        if log != jobs.printed(work, job.node, job.job_id, lines, saved=saved):
            yield f"{_words(job)}: its log is not what it printed: {log[-300:]!r}"
        elif lines < (0 if aborted else least):
            yield f"{_words(job)}: its log has {lines} lines, and it printed {least}"
        elif whole and lines != work.lines:
            yield f"{_words(job)}: its log has {lines} lines of {work.lines}"
        elif log and not aborted and not job.log_complete:
            yield f"{_words(job)}: its log is not complete, and it has ended"
        elif job.log_bytes != len(log):
            yield f"{_words(job)}: its log has {len(log)} bytes, {job.log_bytes} on record"


def _identity(story: Story) -> Iterator[str]:
    known = {job.job_id: job.node for job in story.jobs}
    for witness in story.witnesses.values():
        if known.get(witness.job_id) != witness.node:
            yield f"node {witness.node} was started as job {witness.job_id}, of which nothing is on record"


def _refusal(story: Story) -> Iterator[str]:
    refusal = story.entry.refusal or ""
    if story.row is not None or "nodes" not in refusal or "max_duration" not in refusal:
        yield f"was not refused with every mistake: {refusal!r}"


def _history(story: Story) -> Iterator[str]:
    stop = story.entry.work.stop
    stops = 0 if stop is None else 1 if stop.abort_after is None else 2
    if story.events >= EVENTS_A_JOB * max(1, len(story.jobs)) + EVENTS_A_STOP * stops:
        yield f"has {story.events} events in its histories, of {len(story.jobs)} jobs and {stops} stops"


def _secret(story: Story) -> Iterator[str]:
    for witness in story.witnesses.values():
        wrong = [value for value in witness.secrets if value != jobs.secret_hash()]
        if wrong:
            yield f"node {witness.node}, {witness.job_id}, was given another secret"


def _words(job: JobRow) -> str:
    return f"node {job.node}, try {job.submission + 1} ({job.status}, {job.reason})"
