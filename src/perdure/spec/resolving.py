"""From what a user wrote to the one specification that everything else works from."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import Any
from uuid import UUID

from perdure.model.errors import MOST_ERRORS, InvalidConfiguration
from perdure.model.messages import CodeRef
from perdure.model.origins import EffectiveValue
from perdure.model.policy import Retry, RunPolicy
from perdure.model.statuses import RetryEvent, StartupOrder, StopCriteria
from perdure.model.timing import Timing
from perdure.spec.checking import in_order, source_of
from perdure.spec.defaults import IDLE, Said
from perdure.spec.document import Lines
from perdure.spec.effective import EffectiveRun, InstanceMount
from perdure.spec.effective import Mapping as PortMap
from perdure.spec.environment import MAX_WORD, Resolution
from perdure.spec.grammar.base import unprintable
from perdure.spec.grammar.mounts import HostMount
from perdure.spec.grammar.setting import Setting, settled
from perdure.spec.layers import Layered
from perdure.spec.models.profile import ALL_RETRY_EVENTS, RetrySpec
from perdure.spec.models.run import Task
from perdure.spec.reading import read
from perdure.spec.references import Texts
from perdure.spec.requirements import MIB, requirements
from perdure.spec.rules.base import Problem, Problems, field_errors
from perdure.spec.script import argv, split_words
from perdure.spec.shown import effective_values
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
    reading = read(mapping, flags=flags, profile=profile, project=project, lines=lines)
    run, source = reading.configuration, source_of(mapping)
    if not isinstance(run, Task):
        raise InvalidConfiguration(reading.invalid or reading.not_yet, source=source)
    resolution = Resolution(run, reading.texts, sealed or {}, arguments)
    values = _Values(run, reading.texts, resolution)
    problems = [*_of_submission(run, name, code, arguments), *resolution.problems, *values.problems]
    if secrets is not None:
        problems += _unknown(reading.texts, secrets, project)
    found = reading.placing.errors(field_errors(problems))
    if errors := in_order([*reading.invalid, *found]) or reading.not_yet:
        raise InvalidConfiguration(errors, source=source)
    policy = _policy(run, run_id, project, name, user, submitted_at, timing or Timing())
    effective = _effective(run, policy, values, code or (), reading.layered.mapping)
    return effective.but(shown=_shown(run, reading.layered, effective))


def _of_submission(run: Task, name: str, code: Sequence[CodeRef] | None, arguments: Sequence[str]) -> Problems:
    """What is wrong with this run, and not with its configuration."""
    if run.name not in (None, name):
        hint = "the name comes from the workflow id, run/{project}/{name}; leave it out or make both one"
        yield Problem("name", f"is {run.name!r}, but the run is called {name!r}", hint)
    if (run.files or run.repos) and code is not None and not code:
        sentence = "local files must be uploaded before the run is started"
        yield Problem("files" if run.files else "repos", sentence, "submit it with perdure apply")
    if any(unprintable(argument) for argument in arguments):
        yield Problem("commands", "are given an argument that is not text (NUL, or not UTF-8)", None)


def _unknown(texts: Texts, secrets: Collection[str], project: str) -> Problems:
    """References to secrets that the project does not have."""
    for count, (path, name) in enumerate(texts.named("secrets")):
        if name not in secrets:
            close = get_close_matches(name, secrets, n=1) if count < MOST_ERRORS else []  # the others are not told
            hint = f"did you mean secrets.{close[0]}?" if close else f"set it with `perdure secret set {name}`"
            yield Problem(path, f"refers to secrets.{name}, which project {project} does not have", hint)


class _Values:
    """Environment, commands and process of a task, with their own mistakes."""

    def __init__(self, run: Task, texts: Texts, resolution: Resolution):
        self.problems: list[Problem] = []
        self.env = resolution.env
        self.commands = resolution.commands
        self.registry_auth = resolution.registry_auth
        self.entrypoint = self._entrypoint(run)
        self.argv = argv(self.commands, entrypoint=self.entrypoint, shell=run.shell, has_image=bool(run.image))
        if any(len(word.encode(errors="replace")) >= MAX_WORD for word in self.argv):
            hint = "put them into a script, list it under files, and run that"
            self.problems.append(
                Problem("commands", "are larger than 128 KiB, the most a process can be given", hint)
            )
        all_read = all(f"commands[{index}]" in texts for index in range(len(run.commands)))
        if not self.argv and run.image is None and run.groups is None and all_read:
            self.problems.append(Problem("commands", "has nothing to run: only blanks and comments", None))

    def _entrypoint(self, run: Task) -> tuple[str, ...] | None:
        if run.entrypoint is None:
            return None
        try:
            words = split_words(run.entrypoint)
        except ValueError:
            self.problems.append(Problem("entrypoint", "has a quote that is not closed", None))
            return ()
        if not words:
            self.problems.append(Problem("entrypoint", "is empty", "leave it out to use the image's own"))
        return words


def _effective(
    run: Task, policy: RunPolicy, values: _Values, code: Sequence[CodeRef], mapping: dict[str, Any]
) -> EffectiveRun:
    resources = run.resources
    return EffectiveRun(
        policy=policy,
        image=run.image,
        entrypoint=values.entrypoint,
        commands=values.commands,
        argv=values.argv,
        env=values.env,
        registry_auth=values.registry_auth,
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
        code=tuple(code),
        repo_exists_action=run.repos[0].if_exists if run.repos else "error",
        max_duration=_seconds(run.max_duration, None),
        stop_duration=policy.stop_duration,
        tags=dict(run.tags or {}),
        configuration=dict(mapping),
    )


def _shown(run: Task, layered: Layered, effective: EffectiveRun) -> tuple[EffectiveValue, ...]:
    policy = effective.policy
    before = [("project", policy.project), ("user", policy.user or UNSET)]
    return effective_values(
        run.model_copy(update={"commands": ()}),
        layered,
        before=[EffectiveValue(label=label, value=value) for label, value in before],
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


def _seconds(value: Setting[int], default: float | None) -> float | None:
    found = settled(value, default)
    return None if found is None else float(found)
