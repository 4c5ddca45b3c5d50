"""Rules of every run, of tasks, and of development environments."""

from __future__ import annotations

import re
from collections.abc import Iterator

from perdure.spec.gpus import vendor_of
from perdure.spec.grammar.hardware import GpuSpec, ResourcesSpec
from perdure.spec.grammar.mounts import HostMount, NetworkMount
from perdure.spec.models.development import DevEnvironment
from perdure.spec.models.run import RunFields, Task
from perdure.spec.rules.base import Problem, Problems, Rules, looks_at, twice
from perdure.spec.script import says_nothing, split_words

TO_RUN = "give commands, or an image that runs by itself, or both"

# ── every run ─────────────────────────────────────────────────────────────────────────────────────────────────


@looks_at("docker", "image", "python", "nvcc")
def docker_brings_its_own_image(run: RunFields) -> Problems:
    for field in ("image", "python", "nvcc"):
        if run.docker and getattr(run, field):
            yield Problem(field, "is given together with docker: true, which brings its own image", "leave one out")


@looks_at("image", "python", "nvcc", "docker")
def python_and_nvcc_are_of_the_default_image(run: RunFields) -> Problems:
    for field in ("python", "nvcc"):
        if run.image is not None and not run.docker and getattr(run, field):
            hint = f"leave {field} out, or image, to have the default one"
            yield Problem(field, "is given together with image, and chooses among our default images", hint)


@looks_at("volumes[].path", "volumes[].instance_path", "volumes[].name")
def each_volume_and_each_place_is_mounted_once(run: RunFields) -> Problems:
    places = [mount.path for mount in run.volumes]
    for index, first in twice(places):
        hint = "give each mount a path of its own"
        yield Problem(f"volumes[{index}]", f"is mounted at {places[index]}, where volumes[{first}] is", hint)
    mounted: dict[str, int] = {}
    for index, mount in enumerate(run.volumes):
        names = () if isinstance(mount, HostMount) else _names(mount)
        if again := next((name for name in names if name in mounted), None):
            hint = "mount it once, and link to it in the job"
            yield Problem(f"volumes[{index}]", f"mounts {again} again, as volumes[{mounted[again]}] does", hint)
        mounted |= dict.fromkeys(names, index)


def _names(mount: NetworkMount) -> tuple[str, ...]:
    return (mount.name,) if isinstance(mount.name, str) else mount.name


@looks_at("repos[].local_path", "repos[].url")
def a_repository_comes_from_one_place(run: RunFields) -> Problems:
    for index, repo in enumerate(run.repos):
        if repo.local_path is not None and repo.url is not None:
            yield Problem(f"repos[{index}].url", "is given together with local_path", "leave one of them out")
        if repo.local_path is None and repo.url is None:
            hint = "say where it is: local_path: ., or url: https://github.com/owner/name"
            yield Problem(f"repos[{index}]", "has neither local_path nor url", hint)


@looks_at("depends_on[].run", "name")
def no_run_waits_for_itself_or_twice(run: RunFields) -> Problems:
    names = [dependency.run for dependency in run.depends_on]
    for index, name in enumerate(names):
        if name == run.name:
            yield Problem(
                f"depends_on[{index}]", f"is {name}, this very run: it would wait for itself", "leave it out"
            )
    for index, first in twice(names):
        yield Problem(f"depends_on[{index}]", f"is {names[index]}, as depends_on[{first}] is", "name each run once")


RUN = (
    docker_brings_its_own_image,
    python_and_nvcc_are_of_the_default_image,
    each_volume_and_each_place_is_mounted_once,
    a_repository_comes_from_one_place,
    no_run_waits_for_itself_or_twice,
)


def unfit_for_default_image(
    resources: ResourcesSpec, image: str | None, docker: bool | None, path: str
) -> Iterator[Problem]:
    """What the default image, and the one of docker: true, cannot do: they are for x86 and NVIDIA."""
    hint = "set image to one that is made for it"
    if resources.cpu.arch == "arm" and docker:
        yield Problem(f"{path}.cpu", "is an arm CPU, and docker: true runs on x86 only", "leave docker out, or arm")
    elif resources.cpu.arch == "arm" and image is None:
        yield Problem(f"{path}.cpu", "is an arm CPU, and the default image is for x86", hint)
    vendor = _vendor(resources.gpu)
    if vendor in ("amd", "intel", "tenstorrent") and image is None and not docker:
        yield Problem(f"{path}.gpu", f"is of {_VENDOR_NAMES[vendor]}, and the default image is for NVIDIA", hint)


def does_nothing(commands: tuple[str, ...], image: str | None) -> bool:
    """There are commands, and nothing in any of them; nor is there an image that might run by itself."""
    return bool(commands) and image is None and all(says_nothing(command) for command in commands)


NOTHING_TO_RUN = ("has nothing to run: only blanks and comments", TO_RUN)


def is_divided(entrypoint: str | None) -> bool:
    """Into words, as a shell would: it can be."""
    return not any(undivided(entrypoint))


def undivided(entrypoint: str | None) -> Iterator[Problem]:
    """Why an entrypoint cannot be divided into words."""
    try:
        if entrypoint is not None and not split_words(entrypoint):
            yield Problem("entrypoint", "is empty", "leave it out to use the image's own")
    except ValueError:
        hint = "close it, or write a backslash before it"
        yield Problem("entrypoint", "has a quote that is not closed", hint)


_VENDOR_NAMES = {"amd": "AMD", "intel": "Intel", "tenstorrent": "Tenstorrent"}


def _vendor(gpu: GpuSpec | None) -> str | None:
    return gpu.vendor or vendor_of(gpu.name or ()) if gpu is not None else None


# ── tasks ─────────────────────────────────────────────────────────────────────────────────────────────────────


@looks_at("commands", "image", "groups")
def a_task_has_something_to_run(task: Task) -> Problems:
    if task.groups is None and not task.commands and task.image is None:
        yield Problem("commands", "are missing, and there is no image: there is nothing to run", TO_RUN)


@looks_at("groups[].commands", "image")
def each_group_has_something_to_run(task: Task) -> Problems:
    for index, group in enumerate(task.groups or ()):
        if not group.commands and task.image is None:
            yield Problem(f"groups[{index}].commands", "are missing: this group has nothing to run", TO_RUN)


@looks_at("nodes", "commands", "ports", "entrypoint")
def groups_say_by_themselves_what_they_run(task: Task) -> Problems:
    """Whatever is wrong in a group: it is enough that there are some."""
    for field in ("nodes", "commands", "ports", "entrypoint"):
        if task.groups is not None and field in task.model_fields_set and getattr(task, field):
            hint = "write it as the commands of the groups" if field == "entrypoint" else "give it in each group"
            yield Problem(field, "is given together with groups", hint)


@looks_at("groups[].name")
def groups_have_different_names(task: Task) -> Problems:
    names = [group.name or str(index) for index, group in enumerate(task.groups or ())]
    for index, first in twice(names):
        yield Problem(f"groups[{index}].name", *same_name(names[index], f"groups[{first}]"))


def same_name(name: str, other: str) -> tuple[str, str]:
    """Of two groups: message and hint."""
    return f"is {name}, and so is that of {other}", "a group without a name is called by its number, from 0"


@looks_at("resources", "groups[].resources", "image", "docker")
def another_machine_of_a_task_needs_another_image(task: Task) -> Problems:
    if task.groups is None:
        yield from unfit_for_default_image(task.resources, task.image, task.docker, "resources")
    for index, group in enumerate(task.groups or ()):
        yield from unfit_for_default_image(group.resources, task.image, task.docker, f"groups[{index}].resources")


@looks_at("commands", "entrypoint", "image", "groups")
def commands_do_something(task: Task) -> Problems:
    if task.entrypoint is None and does_nothing(task.commands, task.image):
        yield Problem("commands", *NOTHING_TO_RUN)
    for index, group in enumerate(task.groups or ()):
        if does_nothing(group.commands, task.image):
            yield Problem(f"groups[{index}].commands", *NOTHING_TO_RUN)


@looks_at("entrypoint")
def the_entrypoint_of_a_task_is_divided(task: Task) -> Problems:
    yield from undivided(task.entrypoint)


TASK = Rules[Task](
    always=(
        a_task_has_something_to_run,
        each_group_has_something_to_run,
        groups_say_by_themselves_what_they_run,
        groups_have_different_names,
        *RUN,
    ),
    at_submission=(
        another_machine_of_a_task_needs_another_image,
        commands_do_something,
        the_entrypoint_of_a_task_is_divided,
    ),
)

# ── development environments ──────────────────────────────────────────────────────────────────────────────────

_WINDSURF = re.compile(r"[^@\s]+@[0-9a-f]+")


@looks_at("ide", "version")
def a_version_is_that_of_an_ide(run: DevEnvironment) -> Problems:
    if run.version is not None and run.ide is None:
        yield Problem("version", "is given without an ide", "say whose version it is: ide: vscode")
    elif run.version is not None and run.ide == "windsurf" and not _WINDSURF.fullmatch(run.version):
        yield Problem("version", "is not one of windsurf", "write version@commit: 1.106.0@8951cd3a")


@looks_at("dstack", "inactivity_duration")
def who_uses_the_server_is_never_inactive(run: DevEnvironment) -> Problems:
    if run.dstack and isinstance(run.inactivity_duration, int):
        yield Problem("inactivity_duration", "is given together with dstack: true", "leave one of them out")


@looks_at("resources", "image", "docker")
def another_machine_to_work_on_needs_another_image(run: DevEnvironment) -> Problems:
    yield from unfit_for_default_image(run.resources, run.image, run.docker, "resources")


DEVELOPMENT = Rules[DevEnvironment](
    always=(a_version_is_that_of_an_ide, who_uses_the_server_is_never_inactive, *RUN),
    at_submission=(another_machine_to_work_on_needs_another_image,),
)
