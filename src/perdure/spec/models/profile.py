"""Fields that say where and how long, valid in every run and in profiles."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, Tag

from perdure.spec.grammar.base import Switch, Text, Written, by_form, not_empty, number, whole, wrong
from perdure.spec.grammar.cron import CronList
from perdure.spec.grammar.durations import Duration, IdleDuration, OffableDuration, lasting
from perdure.spec.grammar.forms import Short, scalar
from perdure.spec.grammar.lifecycle import Deadline, TimeZone
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
from perdure.spec.grammar.retry import Retry
from perdure.spec.models.notices import Notice


class UtilizationPolicy(Written):
    """End a run that hardly uses its GPUs."""

    min_gpu_utilization: Annotated[int, Field(ge=0, le=100), BeforeValidator(whole)]
    """Percent. The run ends when one of its GPUs stays below it."""

    time_window: Annotated[Duration, AfterValidator(lasting(300, 3600))]
    """For how long a GPU must stay below; 5 minutes to an hour, such as ``30m``."""


class ScheduleSpec(Written):
    """Run at these times, again and again."""

    cron: CronList
    """Five fields: minute, hour, day, month, weekday (0 and 7 are Sunday). One or several."""

    timezone: TimeZone | None = None
    """In which the fields are meant, such as ``Europe/Berlin``; ``UTC`` if unset. Ours."""


class VastOptions(Written):
    """How offers of Vast.ai are chosen."""

    type: Literal["vastai"]
    """The backend."""

    offer_order: Literal["score", "price"] | None = None
    """Which of its offers come first: the best scored, or the cheapest."""

    min_reliability: Annotated[float, Field(ge=0, le=1), BeforeValidator(number)] | None = None
    """Offers below it are left out, such as ``0.95``."""

    min_score: Annotated[float, Field(ge=0), BeforeValidator(number)] | None = None
    """Offers below it are left out, such as ``100``."""


def _one_per_backend(options: tuple[VastOptions, ...]) -> tuple[VastOptions, ...]:
    types = [option.type for option in options]
    for option in types:
        if types.count(option) > 1:
            raise wrong(f"has two items of type {option}", "put all options of a backend into one item")
    return options


InstanceChoice = Annotated[
    Annotated[InstanceByName, Tag("<name>")]
    | Annotated[InstanceByHost, Tag("<hostname>")]
    | Annotated[InstanceOfFleet, Tag("<fleet>")],
    by_form(
        instance_form,
        "does not name an instance",
        "write its name, hostname: 10.0.0.7, or fleet: gpus and instance: 0",
    ),
    BeforeValidator(named),
    Short(scalar("instance", "string", examples=["gpus-0"])),
]


class PlacementFields(Written):
    """Which offers are acceptable: also fields of a fleet."""

    backends: tuple[BackendName, ...] | None = None
    """Which are allowed, such as ``[aws, gcp]``. Unset: all."""

    regions: tuple[Text, ...] | None = None
    """Which are allowed, such as ``[eu-west-1]``, in capitals or small letters. Unset: all."""

    availability_zones: tuple[Text, ...] | None = None
    """Which are allowed, such as ``[eu-west-1a]``. Unset: all."""

    instance_types: tuple[Text, ...] | None = None
    """Which are allowed, such as ``[p4d.24xlarge]``, in capitals or small letters. Unset: all."""

    reservation: Text | None = None
    """A capacity reservation at the provider, such as ``cr-0123456789abcdef0``."""

    spot_policy: Literal["spot", "on-demand", "auto"] | None = None
    """Spot instances, which may be taken away, or on-demand ones. Unset: ``on-demand`` for a run, ``auto`` for a
    fleet."""

    max_price: Annotated[float, Field(gt=0), BeforeValidator(number)] | None = None
    """Dollars an hour for one instance, such as ``2.5``. Unset: any price."""

    retry: Retry | None = None
    """Whether it is tried again when it ends badly; ``true``: after every event, for an hour. ``off`` if unset."""

    idle_duration: IdleDuration = None
    """How long an instance stays when its last job has ended; of what a run and its fleet say, the shorter.
    Unset: 5 minutes for a run whose fleet says nothing, 3 days for what a fleet makes by itself."""

    tags: Tags | None = None
    """For your own use; also given to the provider, such as ``{team: vision}``."""

    backend_options: Annotated[tuple[VastOptions, ...], AfterValidator(_one_per_backend)] | None = None
    """One item for each backend."""


class ProfileFields(PlacementFields):
    """Where a run may go, how long it may last, and when it is tried again."""

    max_duration: OffableDuration = None
    """How long a job may run, not counting the wait for a machine and its image; ``off`` if unset."""

    stop_duration: OffableDuration = None
    """How long a graceful stop may take in all, before force; ``5m`` if unset."""

    stop_grace: Duration | None = None
    """How long a process may take between the stop signal and the kill; ``10s`` if unset. Ours."""

    creation_policy: Literal["reuse", "reuse-or-create"] | None = None
    """Whether new instances may be made, or only existing ones used; ``reuse-or-create`` if unset."""

    utilization_policy: UtilizationPolicy | None = None
    """When a run that hardly uses its GPUs is ended."""

    startup_order: Literal["any", "master-first", "workers-first"] | None = None
    """Whether all nodes start at once, or some of them first; ``any`` if unset."""

    stop_criteria: Literal["all-done", "master-done"] | None = None
    """Whether a run of several nodes is done when all are, or when its master is; ``all-done`` if unset."""

    schedule: ScheduleSpec | None = None
    """When it is run, again and again."""

    fleets: tuple[Ref, ...] | None = None
    """Only instances of these fleets are used. Unset: of any fleet."""

    instances: Annotated[tuple[InstanceChoice, ...], AfterValidator(not_empty)] | None = None
    """Only these existing instances are used."""

    max_cost: Annotated[float, Field(gt=0), BeforeValidator(number)] | None = None
    """Dollars, such as ``50``. A run that has cost as much is stopped. Ours."""

    deadline: Deadline | None = None
    """When it must have ended, counted from its submission, or a moment with its time zone. Ours."""

    notify: tuple[Notice, ...] | None = None
    """Who is told when its status changes. Ours."""


class Profile(ProfileFields):
    """A named set of these fields, for runs that do not say them."""

    name: Text = ""
    """By which it is asked for, such as ``large``."""

    default: Switch = False
    """Used where no other profile is asked for."""


class ProfilesFile(Written):
    """Sets of fields, each with a name, for all runs."""

    profiles: tuple[Profile, ...]
    """The profiles, in the order in which a default is looked for."""
