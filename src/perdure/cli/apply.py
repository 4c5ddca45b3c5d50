"""``perdure apply``: read, plan, confirm, upload, submit, and follow."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from perdure.cli import explain, fleet_apply, session
from perdure.cli.attach import Attached
from perdure.cli.code import announce, look, send
from perdure.cli.documents import printable
from perdure.cli.flags import Given
from perdure.cli.plan import OFFERS_SHOWN, show_plan
from perdure.cli.terminal import ask, confirm, print_json, say
from perdure.cli.written import Written, Wrong, gather
from perdure.client.client import PerdureClient, check_names, user_name
from perdure.client.code import Part, check_limit
from perdure.client.inputs import above, environment, sealed, takes_arguments
from perdure.client.naming import random_name
from perdure.model.api import ActiveRun, Plan, PlanRequest
from perdure.model.errors import Conflict, InvalidConfiguration, UserError
from perdure.model.messages import RunRequest
from perdure.model.statuses import RunStatus


@dataclass(frozen=True)
class ApplyOptions:
    """What was asked for on the command line."""

    file: str | None = None
    yes: bool = False
    detach: bool = False
    env: tuple[str, ...] = ()
    force: bool = False
    explain: bool = False
    offers: int = OFFERS_SHOWN
    json: bool = False
    project: str = "main"
    arguments: tuple[str, ...] = ()
    flags: Given = field(default_factory=Given)
    profile: str | None = None
    no_profile: bool = False


def apply_file(options: ApplyOptions) -> int:
    """The exit code."""
    if options.file == "-" and not (options.yes or options.explain):
        raise UserError("`-f -` cannot ask whether to go ahead", hint="give -y as well")
    try:
        written = gather(options.file, options.flags, options.profile, no_profile=options.no_profile)
        with written.explained():
            written.check()
            _check_used(options, written)
            written = written.over(above(written.merged, options.env))
            if options.explain:
                return explain.show(written, options.project, options.arguments, options.env, json=options.json)
            written.check_possible()
            if written.kind == "fleet":
                return fleet_apply.apply(written, options.project, yes=options.yes)
            return asyncio.run(_apply(options, written))
    except Wrong as wrong:
        return wrong.tell(json=options.json)


def _check_used(options: ApplyOptions, written: Written) -> None:
    """
    Raises:
        UserError: something on the command line would change nothing.
    """
    if written.kind in ("fleet", "volume", "gateway"):
        given = "-e" if options.env else "--" if options.arguments else None
        if given is not None:
            raise UserError(
                f"{given} is for runs", hint=f"a {written.kind} is what its configuration says; write it there"
            )
    elif options.arguments and not takes_arguments(written.merged):
        raise UserError(
            "no command takes the arguments after --", hint="write ${{ run.args }} where they belong in `commands`"
        )


@dataclass(frozen=True)
class Prepared:
    """A run that could be submitted: everything of it that is on this machine."""

    name: str
    configuration: dict[str, Any]
    """As written, with its name."""

    values: dict[str, str]
    """Of its environment, to be sealed."""

    parts: list[Part]


async def _apply(options: ApplyOptions, written: Written) -> int:
    run = await _prepared(options, written)
    client = await session.connect()
    hello = await client.hello()
    check_limit(run.parts, hello.code_limit)
    plan = await client.plan(
        PlanRequest(
            project=options.project,
            configuration=run.configuration,
            flags=written.flags.mapping,
            profile=written.below,
            user=user_name(),
            arguments=options.arguments,
            have_env=tuple(run.values),
            max_offers=max(options.offers, 50),
        )
    )
    if plan.errors:
        raise InvalidConfiguration(list(plan.errors))
    show_plan(plan, options.project, user_name(), announce(run.parts), flags=options.flags, offers=options.offers)
    if not await _cleared(client, options, plan, written):
        return 0
    request = RunRequest(
        configuration=run.configuration,
        flags=written.flags.mapping,
        profile=written.below,
        user=user_name(),
        code=await send(run.parts, client),
        sealed=sealed(run.values, hello.public_key),
        arguments=options.arguments,
        directory=printable(str(written.source.folder)),
    )
    run_id = await client.apply(options.project, run.name, request)
    say().print(f"Run {run.name} is submitted.")
    if options.json:
        return await _told_as_json(client, options, plan, run_id)
    if plan.upcoming is not None:
        await client.registered(options.project, run.name, run_id)
        say().print(_when(plan), style="dim", markup=False)
        return 0
    if options.detach:
        await client.registered(options.project, run.name, run_id)
        say().print(f"Follow it with: perdure logs {run.name} -f", style="dim")
        return 0
    return await Attached(client, options.project, run.name, run_id, plan.nodes, yes=options.yes).follow()


async def _prepared(options: ApplyOptions, written: Written) -> Prepared:
    """
    Raises:
        InvalidConfiguration, UserError: something that it needs of this machine is not here.
    """
    merged = written.merged
    name: str = merged.get("name") or random_name()
    check_names(options.project, name)
    with written.placed():
        values = environment(merged, options.env)
        parts = await asyncio.to_thread(look, merged, written.source.folder)
    return Prepared(name, {**written.document, "name": name}, values, parts)


def _when(plan: Plan) -> str:
    """Of a run with a schedule, whose end nobody waits for."""
    first = f"It runs next at {plan.upcoming[0]}" if plan.upcoming else "Its schedule has no time to come"
    return f"{first}; now, with: perdure run trigger {plan.name}. To end it: perdure stop {plan.name}"


async def _told_as_json(client: PerdureClient, options: ApplyOptions, plan: Plan, run_id: UUID) -> int:
    """The run as it begins, or attached as it ended; its log is left to ``perdure logs``."""
    if options.detach or plan.upcoming is not None:
        print_json(await client.registered(options.project, plan.name, run_id))
        return 0
    client.be_patient()
    run = await client.wait(options.project, plan.name, run_id)
    print_json(run)
    return 0 if run.status == RunStatus.DONE else 1


async def _cleared(client: PerdureClient, options: ApplyOptions, plan: Plan, written: Written) -> bool:
    """Whether to go ahead. A run of this name that has not ended is stopped first, if that is what is wanted."""
    if plan.active is None:
        enough = plan.upcoming is not None or (plan.offers and not plan.short_of)
        doubt = "" if enough else " It cannot run now: it waits if its `retry` says so, or fails."
        return options.yes or confirm(f"Submit the run {plan.name}?{doubt}")
    active = plan.active
    if not options.force:
        unchanged = await _unchanged(client, options.project, active, written)
        same = ", with this same configuration" if unchanged else ""
        said = f"Run {plan.name} is already {active.status}{same}"
        hint = f"--force stops it and starts this one; `perdure logs {plan.name} -f` follows it"
        if options.yes:
            raise Conflict(said, hint=hint)
        question = f"{said}. Stop it and start this one, or leave it?"
        if ask(question, {"s": "stop", "l": "leave"}, "l", otherwise=hint) != "s":
            return False
    with say().status(f"Stopping the run {plan.name} that is {active.status} …"):
        if await client.stop(options.project, plan.name):
            await client.wait(options.project, plan.name, active.run_id)
    return True


async def _unchanged(client: PerdureClient, project: str, active: ActiveRun, written: Written) -> bool:
    """Whether it was made from this, whatever of it is written in which layer."""
    run = await client.get_run(project, run_id=active.run_id)
    return run.configuration is not None and {**run.configuration, "name": run.name} == {
        **written.merged,
        "name": run.name,
    }
