"""How requests reach a service: probes, rate limits, and the model it serves."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, Tag

from perdure.spec.grammar.base import (
    Switch,
    Text,
    Written,
    by_form,
    discriminator,
    number,
    text,
    whole,
)
from perdure.spec.grammar.durations import Duration, lasting
from perdure.spec.grammar.forms import Short, scalar
from perdure.spec.grammar.traffic import HeaderName, Prefix, ProbePath


class ProbeHeader(Written):
    """A header of a probe's request."""

    name: Annotated[str, Field(min_length=1, max_length=256), BeforeValidator(text)]
    """Such as ``Accept``."""

    value: Annotated[str, Field(min_length=1, max_length=2048), BeforeValidator(text)]
    """Such as ``application/json``."""


class Probe(Written):
    """A request that says whether a replica is ready."""

    type: Literal["http"]
    """How it asks."""

    url: ProbePath | None = None
    """The path on the replica, such as ``/health``; ``/`` if unset."""

    method: Literal["get", "post", "put", "delete", "patch", "head"] | None = None
    """Unset: ``get``, or ``post`` where there is a body."""

    headers: Annotated[tuple[ProbeHeader, ...], Field(max_length=16)] = ()
    """Sent along."""

    body: Annotated[str, Field(min_length=1, max_length=2048), BeforeValidator(text)] | None = None
    """Sent along, such as ``ping``; not with ``get`` or ``head``."""

    timeout: Annotated[Duration, AfterValidator(lasting(1, 300))] | None = None
    """How long an answer may take, 1 second to 5 minutes, such as ``30s``; ``10s`` if unset."""

    interval: Annotated[Duration, AfterValidator(lasting(1))] | None = None
    """From the end of one to the start of the next, such as ``30s``; ``15s`` if unset."""

    ready_after: Annotated[int, Field(ge=1), BeforeValidator(whole)] | None = None
    """How many good answers in a row make a replica ready; ``1`` if unset."""

    until_ready: Switch | None = None
    """Whether to stop asking once it is ready; ``false`` if unset."""


class ByAddress(Written):
    """A client is an address."""

    type: Literal["ip_address"] = "ip_address"
    """Each address is a client."""


class ByHeader(Written):
    """A client is a value of a header."""

    type: Literal["header"]
    """Each value of a header is a client."""

    header: HeaderName
    """Its name, such as ``X-User``."""


def _key_form(value: object) -> str | None:
    return discriminator(value, "type", {"ip_address": "<ip_address>", "header": "<header>"})


class RateLimit(Written):
    """How many requests a client may make."""

    prefix: Prefix = "/"
    """Of the paths it is for; the longest that fits counts. Such as ``/api/``."""

    key: Annotated[
        Annotated[ByAddress, Tag("<ip_address>")] | Annotated[ByHeader, Tag("<header>")],
        by_form(
            _key_form,
            "has a type other than ip_address and header",
            "write type: ip_address, or type: header with header: X-User",
        ),
    ] = ByAddress()
    """What tells one client from another."""

    rps: Annotated[float, Field(ge=1 / 60, le=2**63 / 60), BeforeValidator(number)]
    """Requests a second, such as ``10``; more are answered with 429."""

    burst: Annotated[int, Field(ge=0), BeforeValidator(whole)] = 0
    """How many more may come at once."""


class OpenAiModel(Written):
    """A model whose replicas speak the OpenAI API."""

    type: Literal["chat"] = "chat"
    """What kind of model."""

    name: Text
    """As clients call it, such as ``meta-llama/Llama-3.1-8B-Instruct``."""

    format: Literal["openai"]
    """Which API the replicas speak."""

    prefix: Text = "/v1"
    """Of the paths of that API, such as ``/v1``."""


class TgiModel(Written):
    """A model whose replicas speak the API of TGI."""

    type: Literal["chat"] = "chat"
    """What kind of model."""

    name: Text
    """As clients call it, such as ``meta-llama/Llama-3.1-8B-Instruct``."""

    format: Literal["tgi"]
    """Which API the replicas speak."""

    chat_template: Text | None = None
    """Makes one text of a chat, such as ``"{{ messages }}"``, in Jinja. Unset: the model's own."""

    eos_token: Text | None = None
    """What ends an answer, such as ``</s>``. Unset: the model's own."""


def _model(value: object) -> object:
    return {"name": value, "format": "openai"} if isinstance(value, str) else value


def _model_form(value: object) -> str | None:
    return discriminator(value, "format", {"openai": "<openai>", "tgi": "<tgi>"})


Model = Annotated[
    Annotated[OpenAiModel, Tag("<openai>")] | Annotated[TgiModel, Tag("<tgi>")],
    by_form(_model_form, "needs a format, openai or tgi", "write format: openai, or the name of the model alone"),
    BeforeValidator(_model),
    Short(scalar("model", "string", examples=["meta-llama/Llama-3.1-8B-Instruct"])),
]
