"""From what a user wrote to the one specification that everything else works from."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from perdure.model.errors import InvalidConfiguration
from perdure.model.messages import CodeRef
from perdure.model.origins import EffectiveValue
from perdure.model.policy import Retry, RunPolicy, Schedule
from perdure.model.statuses import RetryEvent, StartupOrder, StopCriteria
from perdure.model.timing import Timing
from perdure.spec.checking import source_of
from perdure.spec.defaults import IDLE, Said
from perdure.spec.document import Lines
from perdure.spec.effective import EffectiveRun, InstanceMount
from perdure.spec.effective import Mapping as PortMap
from perdure.spec.environment import commands, overriding, registry_auth, variables
from perdure.spec.grammar.mounts import HostMount
from perdure.spec.grammar.retry import ALL_RETRY_EVENTS, RetrySpec
from perdure.spec.grammar.setting import Setting, settled
from perdure.spec.layers import Layered
from perdure.spec.models.profile import ScheduleSpec
from perdure.spec.models.run import RunFields, Task
from perdure.spec.parsing import not_a_run
from perdure.spec.reading import Reading, read
from perdure.spec.requirements import MIB, requirements
from perdure.spec.script import argv, split_words
from perdure.spec.shown import effective_values
from perdure.spec.submission import Submission
from perdure.spec.words import UNSET


def resolve(
    mapping: object,
    *,
    flags: Mapping[str, Any] | None = None,
    profile: Mapping[str, Any] | None = None,
    run_id: UUID,
    project: str,
    name: str,
    user: str = "",
    submitted_at: datetime,
    code: Sequence[CodeRef] | None = None,
    sealed: Mapping[str, str] | None = None,
    arguments: Sequence[str] = (),
    secrets: Collection[str] | None = None,
    timing: Timing | None = None,
    lines: Lines | None = None,
) -> EffectiveRun:
    """Everything in force for one run.

    Args:
        mapping: the configuration as written: anything JSON can hold.
        flags: what stands above it, as in a configuration (``{"resources": {"gpu": "A100"}}``).
        profile: what stands below it: one item of ``profiles.yml``.
        name: from the workflow id; a different ``name`` inside is an error.
        code: what was uploaded for ``files`` and ``repos``; None while it is not uploaded yet (a plan).
        sealed: values of environment variables taken from the user's machine, sealed for a worker (base64).
        arguments: stand for ``${{ run.args }}``.
        secrets: names of the project's; None: not known, and so not checked.

    Raises:
        InvalidConfiguration: with every mistake; or, where there is none, with all that cannot be honoured yet.
    """
    submission = Submission(project, name, submitted_at, code, sealed or {}, arguments, secrets)
    reading = read(mapping, flags=flags, profile=profile, project=project, lines=lines, submission=submission)
    run = reading.configuration
    if not isinstance(run, RunFields):
        raise InvalidConfiguration([not_a_run(run.type, reading.placing.lines)], source=source_of(mapping))
    if reading.invalid or reading.not_yet or not isinstance(run, Task):
        raise InvalidConfiguration(reading.invalid or reading.not_yet, source=source_of(mapping))
    policy = _policy(run, run_id, project, name, user, submitted_at, timing or Timing())
    effective = _effective(run, policy, reading, submission)
    return effective.but(values=_shown(run, reading.layered, effective, submission))


def _effective(run: Task, policy: RunPolicy, reading: Reading, submission: Submission) -> EffectiveRun:
    texts = reading.texts
    env = variables(run, texts, submission.sealed)
    entrypoint = None if run.entrypoint is None else split_words(run.entrypoint)
    interpolated = commands(run, texts, submission.arguments)
    resources = run.resources
    return EffectiveRun(
        policy=policy,
        image=run.image,
        entrypoint=entrypoint,
        commands=interpolated,
        argv=argv(interpolated, entrypoint=entrypoint, shell=run.shell, has_image=bool(run.image)),
        env=env,
        registry_auth=registry_auth(run, texts, env),
        user=run.user,
        working_dir=run.working_dir,
        privileged=run.privileged,
        shm_mib=None if resources.shm_size is None else resources.shm_size * MIB,
        cpu_limit=resources.cpu.count.max,
        memory_limit_mib=None if resources.memory.max is None else resources.memory.max * MIB,
        ports=tuple(PortMap(container=port.container_port, local=port.local_port) for port in run.ports),
        mounts=tuple(
            InstanceMount(instance_path=mount.instance_path, path=mount.path, optional=mount.optional)
            for mount in run.volumes
            if isinstance(mount, HostMount)
        ),
        code=tuple(submission.code or ()),
        repo_exists_action=run.repos[0].if_exists if run.repos else "error",
        max_duration=_seconds(run.max_duration, None),
        stop_duration=policy.stop_duration,
        tags=dict(run.tags or {}),
        configuration=dict(reading.layered.mapping),
    )


def _shown(
    run: Task, layered: Layered, effective: EffectiveRun, submission: Submission
) -> tuple[EffectiveValue, ...]:
    given = overriding(run, submission.sealed)
    policy = effective.policy
    before = [("project", policy.project), ("submitted by", policy.user or UNSET)]
    return effective_values(
        run.model_copy(update={"commands": (), "env": {**run.env, **dict.fromkeys(given, Said("given"))}}),
        layered.overridden("env", given),
        before=[EffectiveValue(label=label, value=value, data=value) for label, value in before],
        known={
            "name": policy.name,
            "stop_duration": policy.stop_duration,
            "stop_grace": policy.timing.stop_grace,
            "commands": Said(_process_words(effective)),
            "retry.backoff": policy.timing.retry_backoff,
        },
    )


def _process_words(run: EffectiveRun) -> str:
    if not run.argv:
        return "the image's own"
    return "entrypoint and commands" if run.entrypoint is not None else f"commands in {run.argv[0]}"


def _policy(
    run: Task, run_id: UUID, project: str, name: str, user: str, submitted_at: datetime, timing: Timing
) -> RunPolicy:
    if run.stop_grace is not None:
        timing = timing.but(stop_grace=float(run.stop_grace))
    return RunPolicy(
        run_id=run_id,
        project=project,
        name=name,
        user=user,
        kind=run.type,
        submitted_at=submitted_at,
        nodes=run.nodes,
        startup_order=StartupOrder(run.startup_order or StartupOrder.ANY),
        stop_criteria=StopCriteria(run.stop_criteria or StopCriteria.ALL_DONE),
        retry=_retry(run.retry),
        schedule=_schedule(run.schedule),
        priority=run.priority or 0,
        stop_signal=run.stop_signal or "SIGTERM",
        requirements=requirements(run),
        stop_duration=_seconds(run.stop_duration, timing.stop_duration),
        idle_duration=_seconds(run.idle_duration, IDLE),
        timing=timing,
    )


def _retry(retry: Setting[RetrySpec]) -> Retry | None:
    if not isinstance(retry, RetrySpec):
        return None
    return Retry(
        on=tuple(RetryEvent(event) for event in dict.fromkeys(retry.on_events or ALL_RETRY_EVENTS)),
        duration=3600.0 if retry.duration is None else float(retry.duration),
        max_attempts=retry.max_attempts,
        backoff=tuple(float(pause) for pause in retry.backoff or ()),
        on_exit_codes=retry.on_exit_codes or (),
    )


def _schedule(schedule: ScheduleSpec | None) -> Schedule | None:
    return None if schedule is None else Schedule(cron=schedule.cron, timezone=schedule.timezone or "UTC")


def _seconds(value: Setting[int], default: float | None) -> float | None:
    found = settled(value, default)
    return None if found is None else float(found)
