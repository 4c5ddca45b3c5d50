"""What is read, and worth a word: fields without effect, and what means something else than it may seem to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from perdure.spec.grammar.base import is_list, is_mapping, told, without_login
from perdure.spec.grammar.hardware import OLD_PREFIX, with_old_prefix
from perdure.spec.models.profile import ScheduleSpec
from perdure.spec.models.run import RunFields, Task

_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def warnings(run: RunFields) -> tuple[str, ...]:
    """One sentence each."""
    return (*_without_effect(run), *_not_forwarded(run), *_weekdays(run.schedule), *_readable(run))


def outdated(written: Mapping[str, object]) -> Iterator[str]:
    """What a configuration of any kind says in words that were given up."""
    parts: list[tuple[str, object]] = [("", written)]
    for field in ("groups", "replicas"):
        groups = written.get(field)
        parts += [(f"{field}[{n}].", group) for n, group in enumerate(groups)] if is_list(groups) else []
    for path, part in parts:
        resources = part.get("resources") if is_mapping(part) else None
        for name in with_old_prefix(resources.get("gpu")) if is_mapping(resources) else ():
            yield f"{path}resources.gpu: {told(name)} is an old name: write {told(name.removeprefix(OLD_PREFIX))}"


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
