"""Volumes and gateways."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from perdure.spec.grammar.base import Switch, Text, Written, discriminator, text, whole, wrong
from perdure.spec.grammar.durations import IdleDuration
from perdure.spec.grammar.names import BackendName, Tags
from perdure.spec.grammar.ranges import Memory


class VolumeFields(Written):
    """What every volume has."""

    type: Literal["volume"]
    name: Text | None = None
    size: Memory | None = None
    auto_cleanup_duration: IdleDuration = None
    """Deleted when unused for this long; unset: kept."""

    tags: Tags | None = None


class CloudVolume(VolumeFields):
    backend: Literal["aws", "gcp", "runpod"]
    region: Text
    availability_zone: Text | None = None
    volume_id: Text | None = None

    @model_validator(mode="after")
    def _new_or_there(self) -> Self:
        if self.size is None and self.volume_id is None:
            raise wrong(
                "has neither size nor volume_id", "give a size for a new one, or the id of one that is there"
            )
        return self


class KubernetesVolume(VolumeFields):
    backend: Literal["kubernetes"]
    region: Text = ""
    claim_name: Text | None = None
    storage_class_name: Text | None = None
    access_modes: tuple[Text, ...] = ("ReadWriteOnce",)
    read_only: Switch = False

    @model_validator(mode="after")
    def _new_or_there(self) -> Self:
        if self.size is None and self.claim_name is None:
            raise wrong("has neither size nor claim_name", "give a size, or the name of a claim that is there")
        return self


class LetsEncrypt(Written):
    type: Literal["lets-encrypt"]


class Acm(Written):
    type: Literal["acm"]
    arn: Text


def _certificate_form(value: object) -> str | None:
    return discriminator(value, "type", {"lets-encrypt": "<lets-encrypt>", "acm": "<acm>"})


Certificate = Annotated[
    Annotated[LetsEncrypt, Tag("<lets-encrypt>")] | Annotated[Acm, Tag("<acm>")],
    Discriminator(
        _certificate_form,
        custom_error_type="perdure",
        custom_error_message="has a type other than lets-encrypt and acm",
    ),
]


class Gateway(Written):
    """Where requests to services come in."""

    type: Literal["gateway"]
    name: Text | None = None
    default: Switch | None = None
    backend: BackendName
    region: Text
    instance_type: Annotated[str, Field(min_length=1), BeforeValidator(text)] | None = None
    domain: Text | None = None
    public_ip: Switch = True
    certificate: Certificate | None = LetsEncrypt(type="lets-encrypt")
    replicas: Annotated[int, Field(ge=1), BeforeValidator(whole)] | None = None
    tags: Tags | None = None
