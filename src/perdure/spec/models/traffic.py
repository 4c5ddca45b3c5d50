"""How requests reach a service: probes, rate limits, and the model it serves."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from perdure.spec.grammar.base import (
    Switch,
    Text,
    Written,
    discriminator,
    number,
    text,
    told,
    whole,
    wrong,
)
from perdure.spec.grammar.durations import Duration, lasting
from perdure.spec.grammar.forms import Short, scalar

_PREFIX = re.compile(r"/[^\s\\{}]*")
_HEADER = re.compile(r"[a-zA-Z0-9-_]{1,500}")


def _probe_url(value: str) -> str:
    if not value.startswith("/") or len(value) > 2048 or not value.isprintable():
        raise wrong(f"is not a path on the replica: {told(value)}", "begin it with /")
    return value


def _prefix(value: str) -> str:
    if not _PREFIX.fullmatch(value) or len(value) > 4094:
        raise wrong(f"is not a prefix of paths: {told(value)}", "such as /api/")
    return value


def _header(value: str) -> str:
    if not _HEADER.fullmatch(value):
        raise wrong(f"is not the name of a header: {told(value)}")
    return value


class ProbeHeader(Written):
    name: Annotated[str, Field(min_length=1, max_length=256), BeforeValidator(text)]
    value: Annotated[str, Field(min_length=1, max_length=2048), BeforeValidator(text)]


class Probe(Written):
    """A request that says whether a replica is ready."""

    type: Literal["http"]
    url: Annotated[Text, AfterValidator(_probe_url)] | None = None
    """``/`` if unset."""

    method: Literal["get", "post", "put", "delete", "patch", "head"] | None = None
    headers: Annotated[tuple[ProbeHeader, ...], Field(max_length=16)] = ()
    body: Annotated[str, Field(min_length=1, max_length=2048), BeforeValidator(text)] | None = None
    timeout: Annotated[Duration, AfterValidator(lasting(1, 300))] | None = None
    interval: Annotated[Duration, AfterValidator(lasting(1))] | None = None
    """From the end of one to the start of the next."""

    ready_after: Annotated[int, Field(ge=1), BeforeValidator(whole)] | None = None
    until_ready: Switch | None = None

    @model_validator(mode="after")
    def _body_has_a_method(self) -> Self:
        if self.body is not None and self.method in ("get", "head"):
            raise wrong(f"has a body with method {self.method}", "use post")
        return self


class ByAddress(Written):
    type: Literal["ip_address"] = "ip_address"


class ByHeader(Written):
    type: Literal["header"]
    header: Annotated[Text, AfterValidator(_header)]


def _key_form(value: object) -> str | None:
    return discriminator(value, "type", {"ip_address": "<ip_address>", "header": "<header>"})


class RateLimit(Written):
    """How many requests a client may make."""

    prefix: Annotated[Text, AfterValidator(_prefix)] = "/"
    key: Annotated[
        Annotated[ByAddress, Tag("<ip_address>")] | Annotated[ByHeader, Tag("<header>")],
        Discriminator(
            _key_form,
            custom_error_type="perdure",
            custom_error_message="has a type other than ip_address and header",
        ),
    ] = ByAddress()
    rps: Annotated[float, Field(ge=1 / 60, le=2**63 / 60), BeforeValidator(number)]
    burst: Annotated[int, Field(ge=0), BeforeValidator(whole)] = 0


class OpenAiModel(Written):
    type: Literal["chat"] = "chat"
    name: Text
    format: Literal["openai"]
    prefix: Text = "/v1"


class TgiModel(Written):
    type: Literal["chat"] = "chat"
    name: Text
    format: Literal["tgi"]
    chat_template: Text | None = None
    eos_token: Text | None = None


def _model(value: object) -> object:
    return {"name": value, "format": "openai"} if isinstance(value, str) else value


def _model_form(value: object) -> str | None:
    return discriminator(value, "format", {"openai": "<openai>", "tgi": "<tgi>"})


Model = Annotated[
    Annotated[OpenAiModel, Tag("<openai>")] | Annotated[TgiModel, Tag("<tgi>")],
    Discriminator(
        _model_form,
        custom_error_type="perdure",
        custom_error_message="needs a format, openai or tgi",
    ),
    BeforeValidator(_model),
    Short(scalar("model", "string", examples=["meta-llama/Llama-3.1-8B-Instruct"])),
]
