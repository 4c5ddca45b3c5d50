"""Fleets: instances in a cloud (or on this machine), or hosts reached over SSH."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal, Self, cast

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema, model_validator

from perdure.spec.grammar.base import Text, Written, text, told, whole, wrong
from perdure.spec.grammar.env import Env
from perdure.spec.grammar.forms import Short, scalar
from perdure.spec.grammar.hardware import ResourcesSpec
from perdure.spec.grammar.names import ResourceName
from perdure.spec.grammar.ranges import COUNT, range_words
from perdure.spec.models.profile import PlacementFields


def read_nodes(value: object) -> object:
    """``2``, ``0..2``, ``2..``, ``..2`` or a mapping."""
    if isinstance(value, dict | FleetNodes):
        return cast(object, value)
    if isinstance(value, str) and ".." in value:
        low, _, high = (part.strip() for part in value.partition(".."))
        if not low and not high:
            raise wrong(f"is {told(value)}, a range without an end", "write 2, 0..2 or 2..")
        return {"min": whole(low) if low else 0, "max": whole(high) if high else None}
    exact = whole(value)
    return {"min": exact, "max": exact}


class FleetNodes(Written):
    """How many instances: kept, provisioned at once, and at most."""

    min: Annotated[int, Field(ge=0), BeforeValidator(whole)] = 0
    """So many are kept."""

    target: Annotated[int, Field(ge=0), BeforeValidator(whole)] | None = None
    """So many are made when the fleet is applied. Unset: as many as are kept."""

    max: Annotated[int, Field(ge=0), BeforeValidator(whole)] | None = None
    """Never more. Unset: no limit."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.max is not None and self.min > self.max:
            raise wrong(f"begins after it ends: {self.words()}")
        if self.target is not None and not self.min <= self.target <= (self.max or self.target):
            raise wrong(f"has a target of {self.target} outside {self.words()}")
        return self

    def words(self) -> str:
        return range_words(self.min, self.max)


def read_blocks(value: object) -> int | Literal["auto"]:
    """Into how many equal parts an instance is divided, or ``auto``."""
    if value == "auto":
        return "auto"
    try:
        count = whole(value)
    except ValueError:
        count = 0
    if count < 1 or count > 100_000:
        raise wrong(f"is {told(value)}, where a number of blocks or auto is wanted")
    return count


Blocks = Annotated[
    int | Literal["auto"],
    PlainValidator(read_blocks),
    WithJsonSchema(
        scalar("whole number or auto", "integer", "string", pattern="[0-9][0-9_]*|auto", examples=["auto"])
        | {"minimum": 1}
    ),
]
SshPort = Annotated[int, Field(ge=1, le=65535), BeforeValidator(whole)]


class ProxyJump(Written):
    """The host through which the others are reached."""

    hostname: Text
    """Such as ``bastion.example.com``."""

    user: Text
    """Who logs in, such as ``ubuntu``."""

    identity_file: Text
    """The private key, such as ``~/.ssh/id_ed25519``."""

    port: SshPort | None = None
    """Of its SSH server, such as ``22``."""


_ADDRESS = scalar("private address", "string", examples=["10.0.0.7"])
_NETWORK = scalar("private network", "string", examples=["10.0.0.0/24"])


def private_address(value: object) -> str:
    word = text(value)
    try:
        if ipaddress.ip_address(word).is_private:
            return word
    except ValueError:
        pass
    raise wrong(f"is not a private address: {told(word)}", "such as 10.0.0.7")


def private_network(value: object) -> str:
    word = text(value)
    try:
        if ipaddress.ip_network(word, strict=False).is_private:
            return word
    except ValueError:
        pass
    raise wrong(f"is not a private network: {told(word)}", "such as 10.0.0.0/24")


class SshHost(Written):
    """A host the user owns."""

    hostname: Text
    """Its address, such as ``10.0.0.7``."""

    port: SshPort | None = None
    """Of its SSH server, such as ``22``."""

    user: Text | None = None
    """Who logs in, such as ``ubuntu``. Unset: as for all hosts."""

    identity_file: Text | None = None
    """The private key, such as ``~/.ssh/id_ed25519``. Unset: as for all hosts."""

    proxy_jump: ProxyJump | None = None
    """The host through which it is reached."""

    internal_ip: Annotated[str, PlainValidator(private_address), WithJsonSchema(_ADDRESS)] | None = None
    """Its address among the hosts; for all of them or for none."""

    blocks: Blocks = 1
    """Into how many equal parts it is divided; ``auto``: as many as it has GPUs, or CPUs if it has none."""


def ssh_host(value: object) -> object:
    return {"hostname": value} if isinstance(value, str) else value


class SshConfig(Written):
    """How to reach hosts the user owns."""

    hosts: tuple[
        Annotated[
            SshHost,
            BeforeValidator(ssh_host),
            Short(scalar("host", "string", examples=["10.0.0.7"])),
        ],
        ...,
    ]
    """The hosts."""

    user: Text | None = None
    """Who logs in, such as ``ubuntu``."""

    port: SshPort | None = None
    """Of their SSH servers, such as ``22``."""

    identity_file: Text | None = None
    """The private key, such as ``~/.ssh/id_ed25519``."""

    proxy_jump: ProxyJump | None = None
    """The host through which they are reached."""

    network: Annotated[str, PlainValidator(private_network), WithJsonSchema(_NETWORK)] | None = None
    """In which they reach each other."""


class FleetConfiguration(PlacementFields):
    """Instances that runs go to: made when they are needed, or hosts of your own."""

    type: Literal["fleet"]
    """What it is."""

    name: ResourceName | None = None
    """Its name in the project. Unset: one is made up."""

    placement: Literal["any", "cluster"] = "any"
    """``cluster``: close together, as runs of several nodes need."""

    blocks: Blocks = 1
    """Into how many equal parts an instance is divided, so that as many jobs share it; ``auto``: as many as
    it has GPUs, or CPUs if it has none."""

    nodes: Annotated[FleetNodes, BeforeValidator(read_nodes), Short(COUNT)] | None = None
    """How many instances; those above the lower end are made when they are needed."""

    ssh_config: SshConfig | None = None
    """Hosts of your own, in place of ``nodes``."""

    env: Env = Field(default_factory=dict)
    """Variables of all jobs on these hosts, such as ``[NCCL_DEBUG=INFO]``."""

    resources: ResourcesSpec = ResourcesSpec()
    """What each instance must have."""
