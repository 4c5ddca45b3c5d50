"""Every timeout and interval of the lifecycle, in one object.

A run is given its ``Timing`` by the recorded activity that resolves it, and hands it on, so that a worker with
other numbers never disturbs a workflow that is under way; tests shrink it with ``PERDURE_TIMING``.
All values are seconds.
"""

from __future__ import annotations

from perdure.model.base import Message


class Timing(Message):
    local_activity: float = 2.0
    """Start-to-close of one Postgres transaction as a local activity; then it is run as a normal one."""

    activity: float = 60.0
    """Start-to-close of a short remote step."""

    heartbeat: float = 5.0
    """Of remote steps. A killed worker's step is started again after this."""

    watch_heartbeat: float = 30.0
    """Of the activity that watches a job."""

    activity_retry: float = 0.5
    """First pause between two tries of a step; doubles up to ``activity_retry_max``."""

    activity_retry_max: float = 10.0

    provisioning: float = 600.0
    """From the request for an instance to its shim's first answer."""

    offer: float = 60.0
    """How long one offer is asked for while its provider gives no clear answer; then the next one is tried."""

    settle: float = 60.0
    """How long a provider may not list what it has accepted: what it does not know is gone only after this."""

    pull: float = 1200.0
    """Longest image pull."""

    contact_lost: float = 120.0
    """How long an agent may be out of reach before its job counts as lost (``ssh``, ``local``)."""

    stop_grace: float = 10.0
    """Between SIGTERM and SIGKILL."""

    stop_duration: float = 300.0
    """Bound on a whole graceful stop."""

    abort_bound: float = 30.0
    """How long an abort waits for an agent before the job ends without its word."""

    retry_backoff: tuple[float, ...] = (15.0, 30.0, 60.0, 120.0, 300.0, 600.0)
    """Pauses before the 1st, 2nd, … retry; the last one repeats."""

    queue_patience: float = 600.0
    """A claim at the head of the queue for longer reserves what comes free."""

    fleet_retry: tuple[float, ...] = (60.0, 120.0, 300.0, 600.0, 1800.0)
    """Pauses before the 1st, 2nd, … new try of a fleet whose minimum could not be made; the last one repeats."""

    terminate_retry: float = 2.0
    """First pause between two tries to terminate an instance; doubles up to ``terminate_retry_max``."""

    terminate_retry_max: float = 60.0

    sweep_grace: float = 60.0
    """Nothing younger is swept."""
