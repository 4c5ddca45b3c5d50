"""What comes with one submission of a run, and what can be wrong with that and the configuration together.

The rules here are like those of ``spec.rules``, and are asked together with them: so a user hears of a variable
without a value in the same answer as of a misspelt key.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

from pydantic import BaseModel

from perdure.model.messages import CodeRef
from perdure.model.nearest import MOST_HINTS, nearest
from perdure.spec.environment import (
    MAX_ENV,
    MAX_WORD,
    MOST_REFERENCES,
    command_sizes,
    commands,
    login_sizes,
    overriding,
    size,
    variables,
)
from perdure.spec.grammar.base import told, unprintable
from perdure.spec.grammar.env import Supplied, is_name
from perdure.spec.models.profile import ProfileFields
from perdure.spec.models.run import RunFields, Task
from perdure.spec.references import Texts
from perdure.spec.rules.base import Problem, Problems, Rule, looks_at
from perdure.spec.rules.run import does_nothing, is_divided
from perdure.spec.script import argv, split_words

_SUPPLY = "give it with `-e {0}=…`, or set it where you run perdure apply"
_AS_FILE = "put it into a file, and list that under files"
_AS_SCRIPT = "put them into a script, list it under files, and run that"

Found: TypeAlias = Callable[[RunFields, "Submission"], Problems]


@dataclass(frozen=True)
class Submission:
    """Of one run."""

    project: str
    name: str
    """From the workflow's id."""

    submitted_at: datetime
    code: Sequence[CodeRef] | None = None
    """What was uploaded for ``files`` and ``repos``; None while it is not uploaded yet (a plan)."""

    sealed: Mapping[str, str] = field(default_factory=dict[str, str])
    """Values of variables from the user's machine, by name, sealed for a worker (base64)."""

    arguments: Sequence[str] = ()
    """They stand for ``${{ run.args }}``."""

    secrets: Collection[str] | None = None
    """Names of the project's; None: not known, and so not checked."""

    def rules(self) -> tuple[Rule[BaseModel], ...]:
        return (deadline_ahead_of(self.submitted_at), *(self._rule(find, fields) for find, fields in _RULES))

    def _rule(self, find: Found, fields: Sequence[str]) -> Rule[BaseModel]:
        def found(configuration: BaseModel) -> Problems:
            return find(configuration, self) if isinstance(configuration, RunFields) else iter(())

        return looks_at(*fields)(found)


def deadline_ahead_of(moment: datetime) -> Rule[BaseModel]:
    """Also asked where nothing is submitted; then the moment is now."""

    @looks_at("deadline")
    def a_deadline_is_ahead(configuration: BaseModel) -> Problems:
        deadline = configuration.deadline if isinstance(configuration, ProfileFields) else None
        if isinstance(deadline, datetime) and deadline <= moment:
            hint = "give a time to come, or a duration from submission: 12h"
            yield Problem("deadline", f"is {deadline.isoformat()}, which is past", hint)

    return a_deadline_is_ahead


# ── what it is called, and what comes along ───────────────────────────────────────────────────────────────────


def the_name_is_that_of_the_run(run: RunFields, submission: Submission) -> Problems:
    if run.name not in (None, submission.name):
        hint = "the name comes from the workflow id, run/{project}/{name}; leave it out or make both one"
        yield Problem("name", f"is {run.name!r}, but the run is called {submission.name!r}", hint)


def local_files_are_uploaded(run: RunFields, submission: Submission) -> Problems:
    if (run.files or run.repos) and submission.code is not None and not submission.code:
        message = "local files must be uploaded before the run is started"
        yield Problem("files" if run.files else "repos", message, "submit it with perdure apply")


# ── environment and references ────────────────────────────────────────────────────────────────────────────────


def each_value_has_a_name(run: RunFields, submission: Submission) -> Problems:
    """A client's own check; a raw one may have none."""
    for name in submission.sealed:
        if not is_name(name):
            hint = "write letters, digits and _, such as TOKEN"
            yield Problem("env", f"is given a value for {told(name)}, which is not the name of a variable", hint)


def each_variable_has_a_value(run: RunFields, submission: Submission) -> Problems:
    given = set(overriding(run, submission.sealed))
    for name, value in run.env.items():
        if isinstance(value, Supplied) and value.key not in submission.sealed and name not in given:
            yield Problem(f"env.{name}", f"{name} has no value", _SUPPLY.format(value.key))


def the_environment_fits_a_process(run: RunFields, submission: Submission) -> Problems:
    env = variables(run, Texts(run, "env"), submission.sealed)
    sizes = {name: size(name, value) for name, value in env.items()}
    for name in (name for name in sizes if sizes[name] > MAX_WORD):
        yield Problem(f"env.{name}", f"{name} is larger than 128 KiB, the most a process can be given", _AS_FILE)
    if sum(sizes.values()) > MAX_ENV:
        yield Problem("env", "is larger than 1 MiB, the most a process can be given", _AS_FILE)


def the_login_is_short(run: RunFields, submission: Submission) -> Problems:
    texts = Texts(run, "registry_auth")
    env = variables(run, Texts(run, "env"), submission.sealed) if any(texts.named("env")) else {}
    for path, length in login_sizes(texts, env).items():
        if length > MAX_WORD:
            yield Problem(path, "is larger than 128 KiB, the most that is sent to a registry", "give it a token")


def _references_are_few(field: str) -> Found:
    def find(run: RunFields, submission: Submission) -> Problems:
        texts = Texts(run, field)
        count = sum(1 for namespace in ("env", "secrets") for _ in texts.named(namespace))
        if count > MOST_REFERENCES:
            yield Problem(field, f"has {count} references: at most {MOST_REFERENCES} are allowed", _AS_FILE)

    return find


def _variables_are_there(field: str) -> Found:
    def find(run: RunFields, submission: Submission) -> Problems:
        for path, name in Texts(run, field).named("env"):
            if name not in run.env and name not in submission.sealed:
                hint = f"add `- {name}` to env"
                yield Problem(path, f"refers to env.{name}, which env does not have", hint)

    return find


def _secrets_are_there(field: str) -> Found:
    def find(run: RunFields, submission: Submission) -> Problems:
        if submission.secrets is None:
            return
        secrets = frozenset(submission.secrets)
        named = Texts(run, field).named("secrets")
        unknown = ((path, name) for path, name in named if name not in secrets)
        for count, (path, name) in enumerate(unknown):
            close = nearest(name, secrets) if count < MOST_HINTS else None
            hint = f"did you mean secrets.{close}?" if close else f"set it with `perdure secret set {name}`"
            message = f"refers to secrets.{name}, which project {submission.project} does not have"
            yield Problem(path, message, hint)

    return find


# ── what is run ───────────────────────────────────────────────────────────────────────────────────────────────


def the_process_can_be_started(run: RunFields, submission: Submission) -> Problems:
    if not isinstance(run, Task) or not is_divided(run.entrypoint) or does_nothing(run.commands, run.image):
        return
    texts = Texts(run, "commands")
    if any(f"commands[{index}]" not in texts for index in range(len(run.commands))):
        return
    if any(unprintable(argument) for argument in submission.arguments):
        yield Problem(
            "commands", "are given an argument that is not text (NUL, or not UTF-8)", "encode it, as base64"
        )
    if sum(command_sizes(run, texts, submission.arguments)) > MAX_ENV:
        yield Problem("commands", "are larger than 1 MiB, the most a process can be given", _AS_SCRIPT)
        return
    words = argv(
        commands(run, texts, submission.arguments),
        entrypoint=None if run.entrypoint is None else split_words(run.entrypoint),
        shell=run.shell,
        has_image=bool(run.image),
    )
    if any(len(word.encode(errors="replace")) >= MAX_WORD for word in words):
        yield Problem("commands", "are larger than 128 KiB, the most a process can be given", _AS_SCRIPT)
    if not words and run.commands and run.image is None:
        yield Problem("commands", "have nothing to run: there are no arguments", "give them after --")


_RULES: tuple[tuple[Found, tuple[str, ...]], ...] = (
    (the_name_is_that_of_the_run, ("name",)),
    (local_files_are_uploaded, ("files", "repos")),
    (each_value_has_a_name, ("env",)),
    (each_variable_has_a_value, ("env",)),
    (the_environment_fits_a_process, ("env",)),
    (the_login_is_short, ("registry_auth", "env")),
    (_references_are_few("env"), ("env",)),
    (_references_are_few("registry_auth"), ("registry_auth",)),
    (_variables_are_there("registry_auth"), ("registry_auth", "env")),
    (_variables_are_there("probes"), ("probes", "env")),
    (_secrets_are_there("registry_auth"), ("registry_auth",)),
    (_secrets_are_there("env"), ("env",)),
    (the_process_can_be_started, ("commands", "entrypoint", "shell", "image")),
)
