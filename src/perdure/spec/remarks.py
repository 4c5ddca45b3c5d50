"""What is read, and worth a word: fields without effect, and what means something else than it may seem to."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from perdure.spec.gpus import vendor_of
from perdure.spec.grammar.base import is_list, is_mapping, told, whole_text, without_login
from perdure.spec.grammar.hardware import OLD_PREFIX, names_in, with_old_prefix
from perdure.spec.models.profile import Profile, ScheduleSpec
from perdure.spec.models.run import RunFields, Task

_LIMITS = ("max_duration", "deadline", "idle_duration")
"""Durations of which one of a few seconds makes no sense."""

_MANY_GPUS = 256
"""In no machine that can be had; the numbers of series begin above."""

_FEW = 20
"""Names that are looked at, of one GPU."""

_GPU_AND_MORE = re.compile(
    r"(?P<name>[A-Za-z]{1,9}[0-9]{1,4}[A-Za-z]?)( *[xX*] *(?P<count>[0-9]{1,3})|[ _-](?P<memory>[0-9]+[Gg][Bb]))"
)
"""A name with a count or an amount of memory behind it, which are not divided from it by a colon."""

_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def warnings(run: RunFields) -> tuple[str, ...]:
    """One sentence each."""
    return (*_without_effect(run), *_not_forwarded(run), *_weekdays(run.schedule), *_readable(run))


def outdated(written: Mapping[str, object]) -> Iterator[str]:
    """What a configuration of any kind says in words that were given up."""
    for path, resources in _resources(written):
        for name in with_old_prefix(resources.get("gpu")):
            yield f"{path}resources.gpu: {told(name)} is an old name: write {told(name.removeprefix(OLD_PREFIX))}"


def _resources(written: Mapping[str, object]) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Those of the whole and of each of its groups, with the path to them."""
    parts: list[tuple[str, object]] = [("", written)]
    for field in ("groups", "replicas"):
        groups = written.get(field)
        parts += [(f"{field}[{n}].", group) for n, group in enumerate(groups)] if is_list(groups) else []
    for path, part in parts:
        resources = part.get("resources") if is_mapping(part) else None
        if is_mapping(resources):
            yield path, resources


def named_twice(profiles: Iterable[Profile]) -> Iterator[str]:
    """Of profiles with one name, only the first can be asked for."""
    for name, count in Counter(profile.name for profile in profiles).items():
        if count > 1:
            yield f"{count} profiles have the name {told(name)}: only the first of them is ever used"


def doubtful(written: Mapping[str, object]) -> Iterator[str]:
    """What a configuration of any kind says that is right, and surely means something else than was meant."""
    for field in _LIMITS:
        value = written.get(field)
        if (bare := _bare(value)) is not None and 0 < bare < 60:
            yield f"{field}: {bare} is {bare} seconds: write {bare}m for minutes, {bare}h for hours, or {bare}s"
    for path, resources in _resources(written):
        for field in ("memory", "shm_size"):
            if (bare := _bare(resources.get(field))) is not None and bare >= 1024:
                yield f"{path}resources.{field}: {bare} is {bare}GB: write {bare}MB if you mean megabytes"
        for doubt in _gpus(resources.get("gpu")):
            yield f"{path}resources.gpu: {doubt}"


def _gpus(gpu: object) -> Iterator[str]:
    if (bare := _bare(gpu)) is not None:
        if bare >= _MANY_GPUS:
            yield f"{bare} is a number of GPUs: for one by its name, write RTX{bare}"
        return
    for name in names_in(gpu)[:_FEW]:
        if vendor_of([name.removeprefix(OLD_PREFIX)]) is not None:
            continue
        more = _GPU_AND_MORE.fullmatch(name)
        if more is not None and vendor_of([more["name"]]) is not None:
            yield f"{told(name)} is taken for a name: write {more['name']}:{more['count'] or more['memory']}"
        else:
            yield f"{told(name)} is no GPU that is known here: see that it is spelt right"


def _bare(value: object) -> int | None:
    """A whole number without a unit."""
    if isinstance(value, str):
        return whole_text(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _without_effect(run: RunFields) -> Iterator[str]:
    for field in ("home_dir", "setup", "single_branch"):
        if field in run.model_fields_set:
            yield f"{field} has no effect"
    if run.docker and "privileged" in run.model_fields_set and not run.privileged:
        yield "privileged: false has no effect: docker: true needs it"


def _not_forwarded(run: RunFields) -> Iterator[str]:
    for port in run.ports if isinstance(run, Task) else ():
        if port.local_port not in (None, port.container_port):
            yield (
                f"the local port {port.local_port} is not forwarded yet: port {port.container_port} of the job is"
                f" served at http://ADDRESS:{port.container_port}, where ADDRESS is its instance's"
            )


def _readable(run: RunFields) -> Iterator[str]:
    for index, repo in enumerate(run.repos):
        if repo.url is not None and re.match("https?:", repo.url) and without_login(repo.url) != repo.url:
            yield f"who may read the configuration may read the password or token in the URL of repos[{index}]"


def _weekdays(schedule: ScheduleSpec | None) -> Iterator[str]:
    """Days by number begin with Sunday here, and with Monday in dstack."""
    for cron in schedule.cron if schedule else ():
        numbers = re.findall(r"(?<![/0-9])[0-7](?![0-9])", cron.split()[4])
        days = ", ".join(f"{number} is {_DAYS[int(number)]}" for number in dict.fromkeys(numbers))
        if days:
            yield f"in the schedule {cron!r}, day {days}: write names (mon, sun) to be understood everywhere"
