"""Services: replicas behind one address."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag

from perdure.spec.grammar.base import (
    SWITCHES,
    Switch,
    Text,
    Written,
    by_form,
    not_empty,
    number,
)
from perdure.spec.grammar.durations import Duration
from perdure.spec.grammar.forms import Short, scalar
from perdure.spec.grammar.hardware import ResourcesSpec
from perdure.spec.grammar.names import GroupName, Python, Reference, reference
from perdure.spec.grammar.ports import ServicePort
from perdure.spec.grammar.ranges import ReplicaRange, Replicas
from perdure.spec.grammar.traffic import Https, Window
from perdure.spec.models.run import Commands, RunFields
from perdure.spec.models.traffic import Model, Probe, RateLimit


class Scaling(Written):
    """When replicas are added and taken away."""

    metric: Literal["rps"]
    """Requests a second."""

    target: Annotated[float, Field(gt=0), BeforeValidator(number)]
    """Requests a second of one replica."""

    window: Window | None = None
    """Over how long requests are counted; ``60s`` if unset."""

    scale_up_delay: Duration = 300
    """How long to wait after a change before replicas are added."""

    scale_down_delay: Duration = 600
    """How long to wait after a change before replicas are taken away."""


class Router(Written):
    """Replicas that route to the others."""

    type: Literal["sglang", "dynamo"] = "sglang"
    """The program that routes."""


class ReplicaGroup(Written):
    """Replicas of a service that are alike."""

    name: GroupName | None = None
    """Unset: its number, from 0."""

    count: Replicas | None = None
    """How many replicas."""

    replicas: Replicas | None = None
    """As ``count``."""

    scaling: Scaling | None = None
    """When replicas are added and taken away; for a range of them."""

    resources: ResourcesSpec = ResourcesSpec()
    """What the machine of each replica must have."""

    spot_policy: Literal["spot", "on-demand", "auto"] | None = None
    """As for the whole service."""

    reservation: Text | None = None
    """A capacity reservation at the provider, such as ``cr-0123456789abcdef0``."""

    commands: Commands = ()
    """What its replicas run, such as ``[python serve.py]``."""

    image: Text | None = None
    """Their container image, such as ``python:3.12``."""

    python: Python | None = None
    """Which Python the default image has."""

    nvcc: Switch | None = None
    """Whether the default image has the CUDA compiler."""

    docker: Switch | None = None
    """Whether its jobs may run containers of their own."""

    privileged: Switch | None = None
    """Whether their containers have all rights on their hosts. Unset: as for the service."""

    router: Router | None = None
    """Makes its replica the one that routes to the others."""

    @property
    def size(self) -> ReplicaRange:
        return self.replicas or self.count or ReplicaRange(min=1, max=1)


def _gateway(value: object) -> object:
    if isinstance(value, str) and value.lower() in SWITCHES:
        return SWITCHES[value.lower()]
    return reference(value)


def _gateway_form(value: object) -> str | None:
    if isinstance(value, bool):
        return "<switch>"
    return "<name>" if isinstance(value, dict | Reference) else None


def _replicas_form(value: object) -> str:
    return "<groups>" if isinstance(value, list | tuple) else "<number>"


Groups = Annotated[tuple[ReplicaGroup, ...], AfterValidator(not_empty)]


class Service(RunFields):
    """Something that answers requests, for as long as it is wanted."""

    type: Literal["service"]
    """What it is."""

    commands: Commands = ()
    """Run one after another in one shell, such as ``[python serve.py]``."""

    entrypoint: Text | None = None
    """The main process, such as ``python -m server``; the commands are its arguments."""

    port: ServicePort
    """Where the replica answers."""

    gateway: (
        Annotated[
            Annotated[bool, Tag("<switch>")] | Annotated[Reference, Tag("<name>")],
            by_form(_gateway_form, "is not a gateway", "write its name, or false for none"),
            BeforeValidator(_gateway),
            Short(scalar("gateway", "string", "boolean", examples=["my-gateway"])),
        ]
        | None
    ) = None
    """Which gateway requests come in by; false: none. Unset: the default one if there is one."""

    https: Https = True
    """Whether the gateway serves HTTPS."""

    auth: Switch = True
    """Whether requests need the token of a member of the project."""

    strip_prefix: Switch = True
    """Whether the replica gets paths without the prefix of the service, where there is no gateway."""

    model: Model | None = None
    """The model it serves, by the OpenAI API."""

    scaling: Scaling | None = None
    """When replicas are added and taken away; for a range of them."""

    replicas: (
        Annotated[
            Annotated[Groups, Tag("<groups>")] | Annotated[Replicas, Tag("<number>")], Discriminator(_replicas_form)
        ]
        | None
    ) = None
    """How many, or a list of groups that differ, such as ``2``; ``1`` if unset."""

    groups: Groups | None = None
    """As a list under ``replicas``, such as ``[{count: 2, commands: [python serve.py]}]``."""

    probes: Annotated[tuple[Probe, ...], Field(max_length=10)] | None = None
    """Requests that say whether a replica is ready. Unset: one for a model, none else."""

    rate_limits: tuple[RateLimit, ...] = ()
    """How many requests a client may make, by prefix of the path."""

    @property
    def replica_groups(self) -> tuple[ReplicaGroup, ...]:
        if self.groups is not None:
            return self.groups
        return self.replicas if isinstance(self.replicas, tuple) else ()

    @property
    def replica_range(self) -> ReplicaRange:
        """Of a service without groups."""
        return self.replicas if isinstance(self.replicas, ReplicaRange) else ReplicaRange(min=1, max=1)
