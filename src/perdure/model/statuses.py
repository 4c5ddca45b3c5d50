"""Statuses and termination reasons, and the tables that say what each reason means.

Source: ``docs/lifecycle.md``. The names are the field's (dstack's), so that what users know stays true.
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class RunStatus(StrEnum):
    """Where a run is. The last three are final."""

    PENDING = "pending"
    SUBMITTED = "submitted"
    PROVISIONING = "provisioning"
    RUNNING = "running"
    TERMINATING = "terminating"
    TERMINATED = "terminated"
    FAILED = "failed"
    DONE = "done"

    @property
    def final(self) -> bool:
        return self in (RunStatus.TERMINATED, RunStatus.FAILED, RunStatus.DONE)


class JobStatus(StrEnum):
    """Where one submission of one job is. The last four are final."""

    SUBMITTED = "submitted"
    PROVISIONING = "provisioning"
    PULLING = "pulling"
    RUNNING = "running"
    TERMINATING = "terminating"
    TERMINATED = "terminated"
    ABORTED = "aborted"
    FAILED = "failed"
    DONE = "done"

    @property
    def final(self) -> bool:
        return self in (JobStatus.TERMINATED, JobStatus.ABORTED, JobStatus.FAILED, JobStatus.DONE)


class InstanceStatus(StrEnum):
    """Where an instance is. ``pending`` is written intent: the provider has not been asked yet."""

    PENDING = "pending"
    PROVISIONING = "provisioning"
    IDLE = "idle"
    BUSY = "busy"
    TERMINATING = "terminating"
    TERMINATED = "terminated"


class FleetStatus(StrEnum):
    SUBMITTED = "submitted"
    ACTIVE = "active"
    TERMINATING = "terminating"
    TERMINATED = "terminated"
    FAILED = "failed"


class ClaimStatus(StrEnum):
    """A claim asks for all nodes of one replica at once.

    ``waiting`` in the queue; ``granted`` blocks, some on instances still being made; ``ready``, every instance
    has an address; ``refused``, no capacity and no wish to wait; ``failed``, an instance could not be had;
    ``released``, nothing is held any more.
    """

    WAITING = "waiting"
    GRANTED = "granted"
    READY = "ready"
    REFUSED = "refused"
    FAILED = "failed"
    RELEASED = "released"

    @property
    def holds(self) -> bool:
        return self in (ClaimStatus.GRANTED, ClaimStatus.READY)


class RetryEvent(StrEnum):
    NO_CAPACITY = "no-capacity"
    INTERRUPTION = "interruption"
    ERROR = "error"


class Fault(StrEnum):
    """Whose fault an end or an error is."""

    NOBODY = "nobody"
    USER = "user"
    CAPACITY = "capacity"
    PROVIDER = "provider"
    AGENT = "agent"
    OURS = "ours"


class JobReason(StrEnum):
    """Why a job ended."""

    DONE_BY_RUNNER = "done_by_runner"
    CONTAINER_EXITED_WITH_ERROR = "container_exited_with_error"
    CREATING_CONTAINER_ERROR = "creating_container_error"
    EXECUTOR_ERROR = "executor_error"
    LOG_QUOTA_EXCEEDED = "log_quota_exceeded"
    PORTS_BINDING_FAILED = "ports_binding_failed"
    VOLUME_ERROR = "volume_error"
    GATEWAY_ERROR = "gateway_error"
    FAILED_TO_START_DUE_TO_NO_CAPACITY = "failed_to_start_due_to_no_capacity"
    INTERRUPTED_BY_NO_CAPACITY = "interrupted_by_no_capacity"
    INSTANCE_UNREACHABLE = "instance_unreachable"
    INSTANCE_ACCESS_REVOKED = "instance_access_revoked"
    WAITING_INSTANCE_LIMIT_EXCEEDED = "waiting_instance_limit_exceeded"
    WAITING_RUNNER_LIMIT_EXCEEDED = "waiting_runner_limit_exceeded"
    MAX_DURATION_EXCEEDED = "max_duration_exceeded"
    INACTIVITY_DURATION_EXCEEDED = "inactivity_duration_exceeded"
    TERMINATED_DUE_TO_UTILIZATION_POLICY = "terminated_due_to_utilization_policy"
    TERMINATED_BY_USER = "terminated_by_user"
    TERMINATED_BY_SERVER = "terminated_by_server"
    SCALED_DOWN = "scaled_down"
    ABORTED_BY_USER = "aborted_by_user"


class ReasonRule(NamedTuple):
    """What one reason means: final status, what kind of retry it is, whose fault, and the words for a user."""

    status: JobStatus
    retry: RetryEvent | None
    fault: Fault
    words: str


_FAILED, _ENDED = JobStatus.FAILED, JobStatus.TERMINATED
_ERROR = RetryEvent.ERROR

JOB_REASONS: dict[JobReason, ReasonRule] = {
    JobReason.DONE_BY_RUNNER: ReasonRule(JobStatus.DONE, None, Fault.NOBODY, "finished"),
    JobReason.CONTAINER_EXITED_WITH_ERROR: ReasonRule(_FAILED, _ERROR, Fault.USER, "exited with an error"),
    JobReason.CREATING_CONTAINER_ERROR: ReasonRule(_FAILED, _ERROR, Fault.USER, "its container could not be made"),
    JobReason.EXECUTOR_ERROR: ReasonRule(_FAILED, _ERROR, Fault.AGENT, "could not be started on its host"),
    JobReason.LOG_QUOTA_EXCEEDED: ReasonRule(_FAILED, _ERROR, Fault.USER, "wrote more log than its quota"),
    JobReason.PORTS_BINDING_FAILED: ReasonRule(_FAILED, _ERROR, Fault.USER, "could not bind its ports"),
    JobReason.VOLUME_ERROR: ReasonRule(_FAILED, _ERROR, Fault.PROVIDER, "could not get its volume"),
    JobReason.GATEWAY_ERROR: ReasonRule(_FAILED, _ERROR, Fault.AGENT, "could not be registered on the gateway"),
    JobReason.FAILED_TO_START_DUE_TO_NO_CAPACITY: ReasonRule(
        _FAILED, RetryEvent.NO_CAPACITY, Fault.CAPACITY, "found no capacity"
    ),
    JobReason.INTERRUPTED_BY_NO_CAPACITY: ReasonRule(
        _FAILED, RetryEvent.INTERRUPTION, Fault.PROVIDER, "was interrupted: its spot instance went away"
    ),
    JobReason.INSTANCE_UNREACHABLE: ReasonRule(_FAILED, _ERROR, Fault.PROVIDER, "lost its instance"),
    JobReason.INSTANCE_ACCESS_REVOKED: ReasonRule(_FAILED, _ERROR, Fault.USER, "lost access to its fleet"),
    JobReason.WAITING_INSTANCE_LIMIT_EXCEEDED: ReasonRule(
        _FAILED, _ERROR, Fault.PROVIDER, "waited too long for its instance"
    ),
    JobReason.WAITING_RUNNER_LIMIT_EXCEEDED: ReasonRule(
        _FAILED, _ERROR, Fault.AGENT, "waited too long for its host to answer"
    ),
    JobReason.MAX_DURATION_EXCEEDED: ReasonRule(_ENDED, None, Fault.USER, "ran for its max_duration"),
    JobReason.INACTIVITY_DURATION_EXCEEDED: ReasonRule(
        _ENDED, None, Fault.USER, "was unused for its inactivity_duration"
    ),
    JobReason.TERMINATED_DUE_TO_UTILIZATION_POLICY: ReasonRule(
        _ENDED, None, Fault.USER, "used its GPUs less than its utilization_policy asks"
    ),
    JobReason.TERMINATED_BY_USER: ReasonRule(_ENDED, None, Fault.USER, "was stopped"),
    JobReason.TERMINATED_BY_SERVER: ReasonRule(_ENDED, None, Fault.NOBODY, "was stopped with its run"),
    JobReason.SCALED_DOWN: ReasonRule(_ENDED, None, Fault.NOBODY, "was scaled down"),
    JobReason.ABORTED_BY_USER: ReasonRule(JobStatus.ABORTED, None, Fault.USER, "was aborted"),
}


class RunReason(StrEnum):
    """Why a run ends."""

    ALL_JOBS_DONE = "all_jobs_done"
    JOB_FAILED = "job_failed"
    RETRY_LIMIT_EXCEEDED = "retry_limit_exceeded"
    STOPPED_BY_USER = "stopped_by_user"
    ABORTED_BY_USER = "aborted_by_user"
    SERVER_ERROR = "server_error"
    GATEWAY_ERROR = "gateway_error"


class RunReasonRule(NamedTuple):
    """The run's final status, and the reason stamped on the jobs it still has."""

    status: RunStatus
    stamp: JobReason


RUN_REASONS: dict[RunReason, RunReasonRule] = {
    RunReason.ALL_JOBS_DONE: RunReasonRule(RunStatus.DONE, JobReason.TERMINATED_BY_SERVER),
    RunReason.JOB_FAILED: RunReasonRule(RunStatus.FAILED, JobReason.TERMINATED_BY_SERVER),
    RunReason.RETRY_LIMIT_EXCEEDED: RunReasonRule(RunStatus.FAILED, JobReason.TERMINATED_BY_SERVER),
    RunReason.STOPPED_BY_USER: RunReasonRule(RunStatus.TERMINATED, JobReason.TERMINATED_BY_USER),
    RunReason.ABORTED_BY_USER: RunReasonRule(RunStatus.TERMINATED, JobReason.ABORTED_BY_USER),
    RunReason.SERVER_ERROR: RunReasonRule(RunStatus.FAILED, JobReason.TERMINATED_BY_SERVER),
    RunReason.GATEWAY_ERROR: RunReasonRule(RunStatus.FAILED, JobReason.TERMINATED_BY_SERVER),
}


class InstanceReason(StrEnum):
    """Why an instance was terminated."""

    TERMINATED_BY_USER = "terminated_by_user"
    IDLE_TIMEOUT = "idle_timeout"
    PROVISIONING_TIMEOUT = "provisioning_timeout"
    ERROR = "error"
    UNREACHABLE = "unreachable"
    NO_OFFERS = "no_offers"
    FLEET_DELETED = "fleet_deleted"
    FLEET_SPEC_MISMATCH = "fleet_spec_mismatch"
    MAX_INSTANCES_LIMIT = "max_instances_limit"


class StartupOrder(StrEnum):
    ANY = "any"
    MASTER_FIRST = "master-first"
    WORKERS_FIRST = "workers-first"


class StopCriteria(StrEnum):
    ALL_DONE = "all-done"
    MASTER_DONE = "master-done"
