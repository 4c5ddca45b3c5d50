from __future__ import annotations

import pytest

from perdure.model.ends import end_words
from perdure.model.statuses import JobReason


@pytest.mark.parametrize(
    ("reason", "status", "message", "words"),
    [
        (JobReason.CONTAINER_EXITED_WITH_ERROR, 3, "", "exited with status 3"),
        (
            JobReason.CONTAINER_EXITED_WITH_ERROR,
            137,
            "killed by SIGKILL",
            "exited with status 137: killed by SIGKILL",
        ),
        (JobReason.TERMINATED_BY_SERVER, 143, "", "was stopped with its run"),
        (JobReason.TERMINATED_BY_SERVER, None, "it needs the secret x", "was stopped: it needs the secret x"),
        (JobReason.EXECUTOR_ERROR, None, "no space.", "could not be started on its host: no space"),
        (None, None, "", "ended"),
    ],
)
def test_an_end_is_one_sentence_that_says_each_thing_once(
    reason: JobReason | None, status: int | None, message: str, words: str
):
    assert end_words(reason, status, message) == words
