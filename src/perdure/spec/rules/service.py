"""Rules of services, and of the groups of replicas in them.

A list of groups may be written as ``groups`` and as ``replicas``: a rule about groups looks at both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from perdure.spec.grammar.ranges import ReplicaRange
from perdure.spec.grammar.retry import RetrySpec
from perdure.spec.models.service import ReplicaGroup, Scaling, Service
from perdure.spec.rules.base import Problem, Problems, Rule, Rules, looks_at, twice
from perdure.spec.rules.run import (
    NOTHING_TO_RUN,
    RUN,
    TO_RUN,
    does_nothing,
    same_name,
    undivided,
    unfit_for_default_image,
)

# ── the service ───────────────────────────────────────────────────────────────────────────────────────────────


@looks_at("replicas", "groups")
def replicas_are_said_once(service: Service) -> Problems:
    if service.groups is not None and service.replicas is not None:
        yield Problem("replicas", "is given together with groups, which says the same", "leave one of them out")


@looks_at("commands", "image", "replicas", "groups")
def a_service_has_something_to_run(service: Service) -> Problems:
    if not service.replica_groups and not service.commands and service.image is None:
        yield Problem("commands", "are missing, and there is no image: there is nothing to run", TO_RUN)


@looks_at("replicas", "scaling", "groups")
def a_range_of_replicas_scales(service: Service) -> Problems:
    if not service.replica_groups:
        yield from _scaling(service.replica_range, service.scaling, "replicas", "scaling")


@looks_at("rate_limits[].prefix")
def prefixes_have_one_limit_each(service: Service) -> Problems:
    prefixes = [limit.prefix for limit in service.rate_limits]
    for index, first in twice(prefixes):
        message = f"is {prefixes[index]}, as of rate_limits[{first}]"
        yield Problem(f"rate_limits[{index}].prefix", message, "give each prefix one limit")


@looks_at("probes")
def probes_differ(service: Service) -> Problems:
    probes = [probe.model_dump_json() for probe in service.probes or ()]
    for index, first in twice(probes):
        yield Problem(f"probes[{index}]", f"is the same as probes[{first}]", "leave it out")


@looks_at("probes[].body", "probes[].method")
def a_body_is_sent_with_a_method_that_has_one(service: Service) -> Problems:
    for index, probe in enumerate(service.probes or ()):
        if probe.body is not None and probe.method in ("get", "head"):
            hint = "leave method out, or write method: post"
            yield Problem(f"probes[{index}].body", f"is given with method: {probe.method}, which sends none", hint)


def _scaling(size: ReplicaRange, scaling: Scaling | None, count: str, path: str) -> Iterator[Problem]:
    """A range scales, and needs to be told how; a number does not. ``count`` is the path of the range."""
    if scaling is None and not size.fixed:
        hint = "add scaling: {metric: rps, target: 10}"
        yield Problem(count, f"is {size.words()}, and no scaling says when there are more or fewer", hint)
    if scaling is not None and size.fixed:
        yield Problem(path, f"is given, but the number of replicas is always {size.words()}", "give a range: 1..4")


# ── its groups ────────────────────────────────────────────────────────────────────────────────────────────────


def looks_at_groups(
    *fields: str, service: tuple[str, ...] = ()
) -> Callable[[Callable[[Service], Problems]], Rule[Service]]:
    """Of each group these fields, and of the service those."""
    return looks_at(*(f"{groups}[].{field}" for groups in ("groups", "replicas") for field in fields), *service)


def each_group(service: Service) -> Iterator[tuple[str, ReplicaGroup]]:
    """The path and the group."""
    groups = "groups" if service.groups is not None else "replicas"
    for index, group in enumerate(service.replica_groups):
        yield f"{groups}[{index}]", group


@looks_at("commands", "scaling")
def groups_say_by_themselves_what_they_run(service: Service) -> Problems:
    """Whatever is wrong in a group: it is enough that there are some."""
    for field in ("commands", "scaling"):
        if service.replica_groups and getattr(service, field):
            yield Problem(field, "is given together with groups of replicas", "give it in each group")


@looks_at_groups("name")
def groups_have_different_names(service: Service) -> Problems:
    places = [path for path, _ in each_group(service)]
    names = [group.name or str(index) for index, group in enumerate(service.replica_groups)]
    for index, first in twice(names):
        yield Problem(f"{places[index]}.name", *same_name(names[index], places[first]))


@looks_at_groups("count", "replicas")
def groups_have_a_size(service: Service) -> Problems:
    for path, group in each_group(service):
        if group.count is None and group.replicas is None:
            yield Problem(f"{path}.count", "is missing", "say how many replicas: count: 1")


@looks_at_groups("count", "replicas", "scaling")
def a_group_of_a_range_scales(service: Service) -> Problems:
    for path, group in each_group(service):
        count = "count" if group.replicas is None else "replicas"
        yield from _scaling(group.size, group.scaling, f"{path}.{count}", f"{path}.scaling")


@looks_at_groups("commands", "image", service=("image",))
def each_group_has_something_to_run(service: Service) -> Problems:
    for path, group in each_group(service):
        if not group.commands and group.image is None and service.image is None:
            yield Problem(f"{path}.commands", "are missing: this group has nothing to run", TO_RUN)


@looks_at_groups("docker", "privileged", "image", "python", "nvcc")
def docker_of_a_group_brings_its_own_image(service: Service) -> Problems:
    for path, group in each_group(service):
        for field in ("image", "python", "nvcc"):
            if group.docker and getattr(group, field):
                message = "is given together with docker: true, which brings its own image"
                yield Problem(f"{path}.{field}", message, "leave one out")
        if group.docker and group.privileged is False:
            yield Problem(f"{path}.privileged", "is false, and docker: true needs it", "leave it out")


@looks_at_groups("image", "python", "nvcc", "docker")
def python_and_nvcc_of_a_group_are_of_the_default_image(service: Service) -> Problems:
    for path, group in each_group(service):
        for field in ("python", "nvcc"):
            if group.image is not None and not group.docker and getattr(group, field):
                hint = f"leave {field} out, or image, to have the default one"
                message = "is given together with image, and chooses among our default images"
                yield Problem(f"{path}.{field}", message, hint)


SoftwareField = Literal["image", "docker", "python", "nvcc", "privileged", "spot_policy", "reservation"]
_SAID_ONCE: tuple[SoftwareField, ...] = (
    "image",
    "docker",
    "python",
    "nvcc",
    "privileged",
    "spot_policy",
    "reservation",
)
_SOURCES: tuple[SoftwareField, ...] = ("image", "docker", "python", "nvcc")


@looks_at_groups(*_SAID_ONCE, service=_SAID_ONCE)
def what_is_said_of_the_service_is_not_said_of_a_group(service: Service) -> Problems:
    above = [field for field in _SAID_ONCE if getattr(service, field)]
    for path, group in each_group(service):
        for field in above:
            if getattr(group, field) is not None:
                hint = "give it in one place: for the service, or in the groups"
                yield Problem(f"{path}.{field}", "is given for the whole service, too", hint)


@looks_at_groups(*_SOURCES, service=_SOURCES)
def service_and_group_do_not_choose_different_images(service: Service) -> Problems:
    above = {field for field in _SOURCES if getattr(service, field)}
    for path, group in each_group(service):
        own = {field for field in _SOURCES if getattr(group, field)}
        if above and own and not above & own and not above | own <= {"python", "nvcc"}:
            words = " and ".join(sorted(above))
            hint = "choose the image in one place: for the service, or in the groups"
            for field in sorted(own):
                yield Problem(f"{path}.{field}", f"chooses an image, and {words} of the service does, too", hint)


@looks_at_groups("router", "count", "replicas")
def there_is_one_router(service: Service) -> Problems:
    routers = [(path, group) for path, group in each_group(service) if group.router is not None]
    for path, group in routers:
        if (group.size.min, group.size.max) != (1, 1):
            message = f"is given for {group.size.words()} replicas, and a router is one"
            yield Problem(f"{path}.router", message, "write count: 1")
    for path, _ in routers[1:]:
        hint = "one group routes to all others"
        yield Problem(f"{path}.router", f"is given, and {routers[0][0]} is a router already", hint)


# ── at submission ─────────────────────────────────────────────────────────────────────────────────────────────


@looks_at_groups("router", service=("retry",))
def what_dynamo_routes_to_is_not_retried(service: Service) -> Problems:
    for path, group in each_group(service):
        if isinstance(service.retry, RetrySpec) and group.router is not None and group.router.type == "dynamo":
            yield Problem(
                "retry", f"is given, and {path} is a dynamo router, which cannot be retried", "retry: off"
            )


@looks_at_groups("count", "replicas", service=("schedule",))
def a_scheduled_service_starts_something(service: Service) -> Problems:
    sizes = [group.size for group in service.replica_groups] or [service.replica_range]
    if service.schedule is not None and not any(size.min for size in sizes):
        hint = "let one replica at least be always there: 1..4"
        yield Problem("schedule", "starts nothing: the service may have no replica at all", hint)


@looks_at_groups("scaling", service=("gateway", "https", "scaling", "rate_limits"))
def what_only_a_gateway_does_has_one(service: Service) -> Problems:
    if service.gateway is not False:
        return
    hint = "leave gateway out, or name one"
    if service.https is False:
        yield Problem("https", "is false, and without a gateway there is nothing that could leave it out", hint)
    if service.rate_limits:
        yield Problem("rate_limits", "are kept by a gateway, and gateway: false says that there is none", hint)
    scaling = [(path, group.scaling) for path, group in each_group(service)]
    for path, found in [("", service.scaling), *scaling]:
        if found is not None:
            where = f"{path}.scaling" if path else "scaling"
            yield Problem(where, "counts requests at a gateway, and gateway: false says that there is none", hint)


@looks_at_groups("resources", "image", "docker", service=("resources", "image", "docker"))
def another_machine_of_a_service_needs_another_image(service: Service) -> Problems:
    if not service.replica_groups:
        yield from unfit_for_default_image(service.resources, service.image, service.docker, "resources")
    for path, group in each_group(service):
        image, docker = group.image or service.image, group.docker or service.docker
        yield from unfit_for_default_image(group.resources, image, docker, f"{path}.resources")


@looks_at_groups("commands", "image", service=("commands", "entrypoint", "image"))
def commands_of_a_service_do_something(service: Service) -> Problems:
    if service.entrypoint is None and does_nothing(service.commands, service.image):
        yield Problem("commands", *NOTHING_TO_RUN)
    for path, group in each_group(service):
        if does_nothing(group.commands, group.image or service.image):
            yield Problem(f"{path}.commands", *NOTHING_TO_RUN)


@looks_at("entrypoint")
def the_entrypoint_of_a_service_is_divided(service: Service) -> Problems:
    yield from undivided(service.entrypoint)


SERVICE = Rules[Service](
    always=(
        replicas_are_said_once,
        a_service_has_something_to_run,
        a_range_of_replicas_scales,
        prefixes_have_one_limit_each,
        probes_differ,
        a_body_is_sent_with_a_method_that_has_one,
        groups_say_by_themselves_what_they_run,
        groups_have_different_names,
        groups_have_a_size,
        a_group_of_a_range_scales,
        each_group_has_something_to_run,
        docker_of_a_group_brings_its_own_image,
        python_and_nvcc_of_a_group_are_of_the_default_image,
        what_is_said_of_the_service_is_not_said_of_a_group,
        service_and_group_do_not_choose_different_images,
        there_is_one_router,
        *RUN,
    ),
    at_submission=(
        what_dynamo_routes_to_is_not_retried,
        a_scheduled_service_starts_something,
        what_only_a_gateway_does_has_one,
        another_machine_of_a_service_needs_another_image,
        commands_of_a_service_do_something,
        the_entrypoint_of_a_service_is_divided,
    ),
)
