"""What an event says, in one sentence about its first target: ``failed: exited with status 3``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perdure.model.ends import end_words
from perdure.model.statuses import JobReason

_BEGINS = {
    "run": "submitted",
    "job": "assigned to its instance",
    "instance": "wanted",
    "fleet": "made",
}
"""What the first status of a thing means."""

_CLAIM = {
    "waiting": "waits for capacity",
    "granted": "is granted, and waits for instances to be made",
    "ready": "is ready",
    "refused": "is refused",
    "failed": "cannot be kept",
    "released": "is given back",
}


def sentence(
    kind: str, before: str | None, status: str | None, reason: str | None, words: str, data: Mapping[str, Any]
) -> str:
    """Of the columns of an event.

    Args:
        kind: what it happened to.
        before: its status until then; None: it is new.
        words: what status and reason do not say.
        data: the row's, of which a job's ``exit_status``, an instance's ``offer`` and a claim's ``instances`` are
            read.
    """
    match kind:
        case "job":
            return _of_job(before, status, reason, words, data)
        case "claim":
            return _of_claim(before, status, words, data)
        case "instance" if before == status:
            return f"{data.get('offer') or 'an offer'} did not do: {words}"
        case "sweep":
            return words
        case "secret":
            return status or ""
        case _:
            return _moved(kind, before, status, _why(reason, words))


def _of_claim(before: str | None, status: str | None, words: str, data: Mapping[str, Any]) -> str:
    """A grant names its instances."""
    if (before, status) == ("waiting", "released"):
        return "leaves the queue"
    instances = data.get("instances")
    if instances:
        words = ", ".join(instance["name"] for instance in instances)
    what = _CLAIM.get(status or "", status or "")
    return f"{what}: {words}" if words else what


def _of_job(before: str | None, status: str | None, reason: str | None, words: str, data: Mapping[str, Any]) -> str:
    if reason is None:
        return _moved("job", before, status, words)
    try:
        return _moved("job", before, status, end_words(JobReason(reason), data.get("exit_status"), words))
    except ValueError:
        return _moved("job", before, status, _why(reason, words))


def _moved(kind: str, before: str | None, status: str | None, why: str) -> str:
    if before is None and status in ("submitted", "pending", "active"):
        what = _BEGINS.get(kind, status)
    else:
        what = "" if before == status else status or ""
    return ": ".join(part for part in (what, why) if part)


def _why(reason: str | None, words: str) -> str:
    """What is said in words need not be said by a code."""
    return words or (reason or "").replace("_", " ")
