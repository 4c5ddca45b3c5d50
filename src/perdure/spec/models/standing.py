"""Volumes and gateways."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, Tag

from perdure.spec.grammar.base import Switch, Text, Written, by_form, discriminator, text, whole
from perdure.spec.grammar.durations import IdleDuration
from perdure.spec.grammar.names import BackendName, ResourceName, Tags
from perdure.spec.grammar.ranges import Memory


class VolumeFields(Written):
    """What every volume has."""

    type: Literal["volume"]
    """What it is."""

    name: ResourceName | None = None
    """Its name in the project."""

    size: Memory | None = None
    """Of a new one."""

    auto_cleanup_duration: IdleDuration = None
    """Deleted when unused for as long. Unset: kept."""

    tags: Tags | None = None
    """For your own use; also given to the provider, such as ``{team: vision}``."""


class CloudVolume(VolumeFields):
    """In a cloud."""

    backend: Literal["aws", "gcp", "runpod"]
    """Where it is."""

    region: Text
    """Such as ``eu-west-1``."""

    availability_zone: Text | None = None
    """Such as ``eu-west-1a``."""

    volume_id: Text | None = None
    """Of one that is there already, such as ``vol-0123456789abcdef0``."""


class KubernetesVolume(VolumeFields):
    """In Kubernetes."""

    backend: Literal["kubernetes"]
    """Where it is."""

    region: Text = ""
    """The cluster's context, such as ``main``."""

    claim_name: Text | None = None
    """Of a claim that is there already, such as ``data``."""

    storage_class_name: Text | None = None
    """Such as ``standard``."""

    access_modes: tuple[Text, ...] = ("ReadWriteOnce",)
    """As Kubernetes calls them, such as ``[ReadWriteMany]``."""

    read_only: Switch = False
    """Whether jobs may only read it."""


class LetsEncrypt(Written):
    """A certificate that is made and renewed by itself."""

    type: Literal["lets-encrypt"]
    """Made and renewed by itself."""


class Acm(Written):
    """A certificate of AWS."""

    type: Literal["acm"]
    """A certificate of AWS."""

    arn: Text
    """Its name at AWS, such as ``arn:aws:acm:eu-west-1:123456789012:certificate/1``."""


def _certificate_form(value: object) -> str | None:
    return discriminator(value, "type", {"lets-encrypt": "<lets-encrypt>", "acm": "<acm>"})


Certificate = Annotated[
    Annotated[LetsEncrypt, Tag("<lets-encrypt>")] | Annotated[Acm, Tag("<acm>")],
    by_form(
        _certificate_form,
        "has a type other than lets-encrypt and acm",
        "write type: lets-encrypt, or null for no certificate",
    ),
]


class Gateway(Written):
    """Where requests to services come in."""

    type: Literal["gateway"]
    """What it is."""

    name: ResourceName | None = None
    """Its name in the project."""

    default: Switch | None = None
    """Whether services use it that name none. Unset: if it is the first."""

    backend: BackendName
    """Where its machine is, such as ``aws``."""

    region: Text
    """Such as ``eu-west-1``."""

    instance_type: Annotated[str, Field(min_length=1), BeforeValidator(text)] | None = None
    """Of its machine, such as ``t3.micro``."""

    domain: Text | None = None
    """Under which services appear, such as ``example.com``; may hold ``${{ run.project_name }}``."""

    public_ip: Switch = True
    """Whether it can be reached from everywhere. ``false`` needs a certificate of type ``acm``, or none
    (``certificate: null``), beside it: Let's Encrypt must reach the gateway. Such as ``true``."""

    certificate: Certificate | None = LetsEncrypt(type="lets-encrypt")
    """For HTTPS. Unset: one of Let's Encrypt; null: none."""

    replicas: Annotated[int, Field(ge=1), BeforeValidator(whole)] | None = None
    """How many machines; ``1`` if unset."""

    tags: Tags | None = None
    """For your own use; also given to the provider, such as ``{team: vision}``."""
