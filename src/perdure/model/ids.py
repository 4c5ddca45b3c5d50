"""Identities. Names are for people; everything that must not be mixed up carries a UUID.

Ids that a retry must find again are derived (UUIDv5) from what they belong to, so that making one twice gives
the same one.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID, uuid5

from perdure.model.errors import UserError

RESOURCE_NAME = re.compile(r"^[a-z][a-z0-9-]{0,40}$")
PROJECT_NAME = re.compile(r"^[a-zA-Z0-9-_]{1,50}$")


def check_project_name(project: str) -> None:
    """
    Raises:
        UserError: it is not the name of a project.
    """
    if not PROJECT_NAME.fullmatch(project):
        raise UserError(f"{project[:100]!r} is not the name of a project", hint="1 to 50 of a-z, A-Z, 0-9, - and _")


class OwnName(NamedTuple):
    """What a standing workflow's id says."""

    project: str
    name: str


def run_workflow_id(project: str, name: str) -> str:
    return f"run/{project}/{name}"


def parse_run_workflow_id(workflow_id: str) -> OwnName | None:
    """The project and name that a RunWorkflow's id says, or None if it is not ``run/{project}/{name}``."""
    return _parsed(workflow_id, "run")


def parse_fleet_workflow_id(workflow_id: str) -> OwnName | None:
    """The project and name that a FleetWorkflow's id says, or None if it is not ``fleet/{project}/{name}``."""
    return _parsed(workflow_id, "fleet")


def _parsed(workflow_id: str, kind: str) -> OwnName | None:
    parts = workflow_id.split("/")
    if len(parts) != 3 or parts[0] != kind:
        return None
    project, name = parts[1:]
    if not PROJECT_NAME.match(project) or not RESOURCE_NAME.match(name):
        return None
    return OwnName(project, name)


def job_workflow_id(run_id: UUID, replica: int, node: int, submission: int) -> str:
    return f"job/{run_id}/{replica}-{node}/{submission}"


def instance_workflow_id(instance_id: UUID) -> str:
    return f"instance/{instance_id}"


def fleet_workflow_id(project: str, name: str) -> str:
    return f"fleet/{project}/{name}"


@lru_cache(4096)
def job_id(run_id: UUID, replica: int, node: int, submission: int) -> UUID:
    """The submission's UUID: the agents' task id, and the key of its log."""
    return uuid5(run_id, f"job {replica}-{node} {submission}")


@lru_cache(4096)
def claim_id(run_id: UUID, replica: int, submission: int, attempt: int) -> UUID:
    """One claim per try to place one submission of one replica."""
    return uuid5(run_id, f"claim {replica} {submission} {attempt}")


def job_name(run: str, replica: int, node: int) -> str:
    return f"{run}-{node}-{replica}"


def log_key(job_id: UUID) -> str:
    """The log of one submission, in the blob store."""
    return f"logs/{job_id}"


def code_key(sha256: str) -> str:
    """A code archive, in the blob store."""
    return f"code/{sha256}"
