"""``perdure apply --explain``: every value in force, and what says so."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from perdure.cli import session
from perdure.cli.errors import Mistake, mistakes
from perdure.cli.tables import Lines
from perdure.cli.terminal import out, print_json, say, visible
from perdure.cli.written import Written
from perdure.client.client import user_name
from perdure.client.inputs import needed
from perdure.client.naming import random_name
from perdure.model.api import Plan, PlanRequest
from perdure.model.base import Message
from perdure.model.errors import ControlPlaneError, InvalidConfiguration
from perdure.model.origins import EffectiveValue


class Explained(EffectiveValue):
    """With the place where it is written, if it is in a file."""

    file: str | None = None
    line: int | None = None


class Explanation(Message):
    """Everything in force for one configuration."""

    kind: str
    profile: str | None = None
    effective: tuple[Explained, ...]
    not_yet: tuple[Mistake, ...] = ()
    """What this version cannot honour: the run would be refused."""

    warnings: tuple[str, ...] = ()


def show(written: Written, project: str, arguments: tuple[str, ...], env: tuple[str, ...], *, json: bool) -> int:
    """The exit code. Nothing is submitted; the worker is asked, if there is one that could run it.

    Raises:
        InvalidConfiguration: it can never be right.
    """
    explanation = _explain(written, project, arguments, env)
    if json:
        print_json(explanation)
        return 0
    out().print(_table(written, explanation.effective))
    if explanation.not_yet:
        say().print("This version cannot run it yet:", style="yellow")
    for mistake in explanation.not_yet:
        say().print(Text(visible(f"  {mistake.words()}")), soft_wrap=True)
    for warning in explanation.warnings:
        say().print(Text("Warning: ", "yellow") + Text(visible(warning)))
    return 0


def _explain(written: Written, project: str, arguments: tuple[str, ...], env: tuple[str, ...]) -> Explanation:
    reading = written.reading
    values, warnings = reading.effective, reading.warnings
    if written.kind == "task" and not reading.not_yet:
        try:
            plan = asyncio.run(_plan(written, project, arguments, env))
        except ControlPlaneError as error:
            warnings = (*warnings, f"what a fleet adds is not known: {error.message}")
        else:
            if plan.errors:
                raise InvalidConfiguration(list(plan.errors))
            values, warnings = plan.effective, plan.warnings
    return Explanation(
        kind=written.kind,
        profile=written.profile.name if written.profile is not None else None,
        effective=tuple(_placed(written, values)),
        not_yet=mistakes(written.by_source(reading.not_yet), written.source.name),
        warnings=warnings,
    )


async def _plan(written: Written, project: str, arguments: tuple[str, ...], env: tuple[str, ...]) -> Plan:
    names = [*(name for _, name in needed(written.merged)), *(item.partition("=")[0] for item in env)]
    client = await session.connect()
    return await client.plan(
        PlanRequest(
            project=project,
            configuration={"name": random_name(), **written.document},
            flags=written.flags.mapping,
            profile=written.below,
            user=user_name(),
            arguments=arguments,
            have_env=tuple(dict.fromkeys(names)),
        )
    )


def _placed(written: Written, values: Iterable[EffectiveValue]) -> Iterable[Explained]:
    for value in values:
        line = written.line(value.origin)
        yield Explained(**dict(value), file=line and line[0], line=line and line[1])


def _table(written: Written, values: Sequence[Explained]) -> Table:
    table = Lines(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    table.add_column("FIELD", no_wrap=True)
    table.add_column("VALUE", overflow="fold")
    table.add_column("FROM", overflow="fold")
    for value in values:
        table.add_row(Text(value.path or value.label), Text(visible(value.value)), _from(written, value, values))
    return table


def _from(written: Written, value: Explained, values: Sequence[Explained]) -> Text:
    """Nothing of what no field sets, nor of a whole whose parts are from several layers."""
    parts = {one.origin.words() for one in values if one.path.startswith(f"{value.path}.")} - {"default"}
    if not value.path or len(parts) > 1:
        return Text()
    return Text(visible(written.words(value.origin)), "dim" if value.origin.layer == "default" else "")
