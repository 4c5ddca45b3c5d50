"""Fleets: instances in a cloud (or on this machine), or hosts reached over SSH."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from perdure.spec.grammar.base import Text, Written, whole
from perdure.spec.grammar.env import Env
from perdure.spec.grammar.fleets import Blocks, Nodes, PrivateAddress, PrivateNetwork
from perdure.spec.grammar.forms import Short, scalar
from perdure.spec.grammar.hardware import ResourcesSpec
from perdure.spec.grammar.names import ResourceName
from perdure.spec.models.profile import PlacementFields

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

    internal_ip: PrivateAddress | None = None
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

    network: PrivateNetwork | None = None
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

    nodes: Nodes | None = None
    """How many instances; those above the lower end are made when they are needed."""

    ssh_config: SshConfig | None = None
    """Hosts of your own, in place of ``nodes``,
    such as ``{user: ubuntu, identity_file: ~/.ssh/id_ed25519, hosts: [10.0.0.7]}``."""

    env: Env = Field(default_factory=dict)
    """Variables of all jobs on the hosts of ``ssh_config``, without which it may not be given;
    such as ``[NCCL_DEBUG=INFO]``."""

    resources: ResourcesSpec = ResourcesSpec()
    """What each instance must have."""
