"""How a job ended, in words: one fact, said once."""

from __future__ import annotations

from perdure.model.statuses import JOB_REASONS, JobReason


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
