"""How a job ended, in words: one fact, said once."""

from __future__ import annotations

from collections.abc import Iterable

from perdure.model.statuses import JOB_REASONS, JobReason, JobStatus, RunStatus


def end_words(reason: JobReason | None, exit_status: int | None, message: str = "") -> str:
    """What follows the job's name: ``exited with status 3``, ``lost its instance: no answer for 5 min``.

    ``message`` is what the reason does not say already: ``killed by SIGKILL``, ``command not found: trian``.
    """
    if reason is None:
        return message or "ended"
    words = JOB_REASONS[reason].words
    if exit_status is not None and reason is JobReason.CONTAINER_EXITED_WITH_ERROR:
        words = f"exited with status {exit_status}"
    if message and reason is JobReason.TERMINATED_BY_SERVER:
        words = "was stopped"  # the message says with what, or what for
    return f"{words}: {message.rstrip('.')}" if message else words


def exit_status_of(run: RunStatus, ends: Iterable[tuple[JobStatus, int | None]]) -> int | None:
    """The exit status that a run's end is about; None: it is about none.

    Of a run that is done, that of the jobs that are: what was stopped because the master was done says nothing
    of it. Of one that failed, the highest of the jobs that failed, or else of those that it ended. Of one that was
    stopped, the highest of all.

    Args:
        ends: how each job of its last attempt stands, and what it exited with.
    """
    found = list(ends)
    match run:
        case RunStatus.DONE:
            about = {JobStatus.DONE}
        case RunStatus.FAILED:
            failed = {JobStatus.FAILED} & {status for status, _ in found}
            about = failed or {JobStatus.TERMINATED, JobStatus.ABORTED}
        case RunStatus.TERMINATED:
            about = set(JobStatus)
        case _:
            return None
    return max((code for status, code in found if status in about and code is not None), default=None)
