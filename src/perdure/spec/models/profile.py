"""Fields that say where and how long, valid in every run and in profiles."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from perdure.spec.grammar.base import SWITCHES, Text, Written, not_empty, number, whole, wrong
from perdure.spec.grammar.cron import CronList
from perdure.spec.grammar.durations import Duration, IdleDuration, OffableDuration, lasting
from perdure.spec.grammar.names import (
    BackendName,
    InstanceByHost,
    InstanceByName,
    InstanceOfFleet,
    Ref,
    Tags,
    instance_form,
    named,
)

RetryEventName = Literal["no-capacity", "interruption", "error"]
ALL_RETRY_EVENTS: tuple[RetryEventName, ...] = ("no-capacity", "interruption", "error")


class RetrySpec(Written):
    """When a run that ended badly is run again."""

    on_events: Annotated[tuple[RetryEventName, ...], AfterValidator(not_empty)] | None = None
    """Unset: all of them."""

    duration: Duration | None = None
    """The window in which it is tried again; an hour if unset."""

    max_attempts: Annotated[int, Field(ge=1), BeforeValidator(whole)] | None = None


def _retry(value: object) -> object:
    if value is True or (isinstance(value, str) and SWITCHES.get(value.lower()) is True):
        return {}
    if isinstance(value, str) and SWITCHES.get(value.lower()) is False:
        return False
    return value


def _retry_form(value: object) -> str | None:
    if value is False:
        return "<off>"
    return "<on>" if isinstance(value, dict | RetrySpec) else None


Retry = Annotated[
    Annotated[RetrySpec, Tag("<on>")] | Annotated[Literal[False], Tag("<off>")],
    Discriminator(
        _retry_form,
        custom_error_type="perdure",
        custom_error_message="is neither true, false nor a mapping with on_events and duration",
    ),
    BeforeValidator(_retry),
]


class UtilizationPolicy(Written):
    """End a run that hardly uses its GPUs."""

    min_gpu_utilization: Annotated[int, Field(ge=0, le=100), BeforeValidator(whole)]
    """Percent."""

    time_window: Annotated[Duration, AfterValidator(lasting(300, 3600))]


class ScheduleSpec(Written):
    """Run at these times, again and again."""

    cron: CronList


class VastOptions(Written):
    type: Literal["vastai"]
    offer_order: Literal["score", "price"] | None = None
    min_reliability: Annotated[float, Field(ge=0, le=1), BeforeValidator(number)] | None = None
    min_score: Annotated[float, Field(ge=0), BeforeValidator(number)] | None = None


InstanceChoice = Annotated[
    Annotated[InstanceByName, Tag("<name>")]
    | Annotated[InstanceByHost, Tag("<hostname>")]
    | Annotated[InstanceOfFleet, Tag("<fleet>")],
    Discriminator(instance_form, custom_error_type="perdure", custom_error_message="does not name an instance"),
    BeforeValidator(named),
]


class PlacementFields(Written):
    """Which offers are acceptable: also fields of a fleet."""

    backends: tuple[BackendName, ...] | None = None
    regions: tuple[Text, ...] | None = None
    availability_zones: tuple[Text, ...] | None = None
    instance_types: tuple[Text, ...] | None = None
    reservation: Text | None = None
    spot_policy: Literal["spot", "on-demand", "auto"] | None = None
    max_price: Annotated[float, Field(gt=0), BeforeValidator(number)] | None = None
    """Dollars an hour of one instance."""

    retry: Retry | None = None
    """true: on every event, for an hour."""

    idle_duration: IdleDuration = None
    """How long an instance stays when its last job has ended."""

    tags: Tags | None = None
    backend_options: tuple[VastOptions, ...] | None = None

    @model_validator(mode="after")
    def _one_option_per_backend(self) -> Self:
        options = [option.type for option in self.backend_options or ()]
        if len(options) != len(set(options)):
            raise wrong("has backend_options twice for one backend")
        return self


class ProfileFields(PlacementFields):
    """Where a run may go, how long it may last, and when it is tried again."""

    max_duration: OffableDuration = None
    """Longest time it may run, once started."""

    stop_duration: OffableDuration = None
    """Bound on a graceful stop."""

    stop_grace: Duration | None = None
    """Between the stop signal and the kill."""

    creation_policy: Literal["reuse", "reuse-or-create"] | None = None
    utilization_policy: UtilizationPolicy | None = None
    startup_order: Literal["any", "master-first", "workers-first"] | None = None
    stop_criteria: Literal["all-done", "master-done"] | None = None
    schedule: ScheduleSpec | None = None
    fleets: tuple[Ref, ...] | None = None
    instances: Annotated[tuple[InstanceChoice, ...], AfterValidator(not_empty)] | None = None
