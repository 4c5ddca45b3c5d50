"""What the agents are told about a job, made from its effective specification and its opened values."""

from __future__ import annotations

from collections.abc import Sequence

from activities.opening import Opened
from perdure.agents.protocol import Archive, JobState, Mount, SubmitBody, TaskConfig, TaskInfo
from perdure.model.ids import job_name
from perdure.model.messages import JobOutcome, JobStep
from perdure.model.statuses import JobReason
from perdure.store.instances import InstanceRecord
from perdure.store.jobs import JobContext

MIB = 1024 * 1024


def task_config(step: JobStep, job: JobContext, instance: InstanceRecord, values: Opened) -> TaskConfig:
    """For the shim: the image, and what the container is made like."""
    run, key = job.effective, step.key
    whole = job.blocks >= job.total_blocks
    return TaskConfig(
        id=key.job_id,
        name=job_name(run.policy.name, key.replica, key.node),
        run_id=key.run_id,
        submission=key.submission,
        slot=f"{key.replica}-{key.node}",
        image_name=run.image or "",
        registry_username=values.registry_username,
        registry_password=values.registry_password,
        container_user=run.user or "",
        privileged=run.privileged,
        gpu=gpus_of(job, instance),
        cpu=run.cpu_limit or 0,
        memory=int((run.memory_limit_mib or 0) * MIB),
        shm_size=int((run.shm_mib or 0) * MIB),
        network_mode="host" if whole else "bridge",
        ports=[port.container for port in run.ports],
        instance_mounts=[Mount.model_validate(mount.model_dump()) for mount in run.mounts],
        pull_timeout=step.timing.pull,
    )


def submit_body(step: JobStep, job: JobContext, instance: InstanceRecord, values: Opened) -> SubmitBody:
    """For the runner: what to run, and with which variables."""
    run, key = job.effective, step.key
    return SubmitBody(
        run_id=key.run_id,
        run_name=run.policy.name,
        project=run.policy.project,
        job_id=key.job_id,
        job_name=job_name(run.policy.name, key.replica, key.node),
        replica=key.replica,
        node=key.node,
        submission=key.submission,
        commands=list(run.argv),
        env=dict(values.env),
        working_dir=run.working_dir,
        max_duration=run.max_duration,
        stop_signal=run.policy.stop_signal,
        stop_grace=step.timing.stop_grace,
        archives=[Archive(sha256=code.sha256, path=code.path, kind=code.kind) for code in run.code],
        node_addresses=list(step.addresses),
        gpus_per_node=gpus_of(job, instance),
        repo_exists_action=run.repo_exists_action,
    )


def gpus_of(job: JobContext, instance: InstanceRecord) -> int:
    """The share of the instance's GPUs that the job's blocks are."""
    gpus = len(instance.offer.resources.gpus) if instance.offer else 0
    return gpus * job.blocks // max(job.total_blocks, 1)


def ports_of(job: JobContext, task: TaskInfo) -> tuple[tuple[int, int], ...]:
    """(port in the job, port on its host); the same on both sides where the job shares the host's network."""
    published = {port.container: port.host for port in task.ports}
    return tuple((port.container, published.get(port.container, port.container)) for port in job.effective.ports)


def reason_of(word: str, otherwise: JobReason = JobReason.EXECUTOR_ERROR) -> JobReason:
    """An agent's reason as one of ours; a word of a newer agent counts as ``otherwise``."""
    return JobReason(word) if word in _REASONS else otherwise


def outcome_of_task(task: TaskInfo) -> JobOutcome:
    """Of a task that the shim says is terminated."""
    return JobOutcome(
        reason=reason_of(task.termination_reason),
        message=task.termination_message or "its host ended the task without a word",
    )


def outcome_of_state(state: JobState) -> JobOutcome:
    """Of a job that its runner says has ended."""
    failed = JobReason.CONTAINER_EXITED_WITH_ERROR if state.exit_status else JobReason.EXECUTOR_ERROR
    plain = JobReason.DONE_BY_RUNNER if state.exit_status == 0 and not state.stop_requested else failed
    return JobOutcome(reason=reason_of(state.reason, plain), exit_status=state.exit_status, message=state.message)


_REASONS: Sequence[str] = [reason.value for reason in JobReason]
