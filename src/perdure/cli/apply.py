"""``perdure apply``: read, plan, confirm, upload, submit, and follow."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from uuid import UUID

from perdure.cli import fleet_apply, session
from perdure.cli.attach import Attached
from perdure.cli.code import announce, look, send
from perdure.cli.documents import Shown, Source, check, read
from perdure.cli.plan import show_plan
from perdure.cli.terminal import ask, confirm, print_json, say
from perdure.client.client import PerdureClient, check_names, user_name
from perdure.client.code import check_limit
from perdure.client.inputs import environment, sealed
from perdure.client.naming import random_name
from perdure.model.api import ActiveRun, Plan, PlanRequest
from perdure.model.errors import Conflict, InvalidConfiguration, UserError
from perdure.model.messages import RunRequest
from perdure.model.statuses import RunStatus
from perdure.spec.document import Document


@dataclass(frozen=True)
class ApplyOptions:
    """What was asked for on the command line."""

    file: str | None = None
    name: str | None = None
    yes: bool = False
    detach: bool = False
    env: tuple[str, ...] = ()
    force: bool = False
    json: bool = False
    project: str = "main"
    arguments: tuple[str, ...] = ()


def apply_file(options: ApplyOptions) -> int:
    """The exit code."""
    if options.file == "-" and not options.yes:
        raise UserError("`-f -` cannot ask whether to go ahead", hint="give -y as well")
    source = read(options.file)
    try:
        with source.explained():
            document = source.load()
        if options.name is not None:
            check_names(options.project, options.name)
            document["name"] = options.name
        with source.explained(document):
            check(document)
            if document.get("type") == "fleet":
                return fleet_apply.apply(document, options.project, yes=options.yes)
            return asyncio.run(_apply(options, source, document))
    except Shown:
        return 1


async def _apply(options: ApplyOptions, source: Source, document: Document) -> int:
    named: str = document.setdefault("name", random_name())
    values = environment(document, options.env)
    check_names(options.project, named)
    parts = await asyncio.to_thread(look, document, source.folder)
    client = await session.connect()
    hello = await client.hello()
    check_limit(parts, hello.code_limit)
    plan = await client.plan(
        PlanRequest(
            project=options.project,
            configuration=dict(document),
            user=user_name(),
            arguments=options.arguments,
            have_env=tuple(values),
        )
    )
    if plan.errors:
        raise InvalidConfiguration(list(plan.errors))
    show_plan(plan, options.project, user_name(), announce(parts))
    if not await _cleared(client, options, plan, document):
        return 0
    request = RunRequest(
        configuration=dict(document),
        user=user_name(),
        code=await send(parts, client),
        sealed=sealed(values, hello.public_key),
        arguments=options.arguments,
        directory=str(source.folder),
    )
    run_id = await client.apply(options.project, named, request)
    say().print(f"Run {named} is submitted.")
    if options.json:
        return await _told_as_json(client, options, named, run_id)
    if options.detach:
        await client.registered(options.project, named, run_id)
        say().print(f"Follow it with: perdure logs {named} -f", style="dim")
        return 0
    return await Attached(client, options.project, named, run_id, plan.nodes, yes=options.yes).follow()


async def _told_as_json(client: PerdureClient, options: ApplyOptions, name: str, run_id: UUID) -> int:
    """The run as it begins, or attached as it ended; its log is left to ``perdure logs``."""
    if options.detach:
        print_json(await client.registered(options.project, name, run_id))
        return 0
    client.be_patient()
    run = await client.wait(options.project, name, run_id)
    print_json(run)
    return 0 if run.status == RunStatus.DONE else 1


async def _cleared(client: PerdureClient, options: ApplyOptions, plan: Plan, document: Document) -> bool:
    """Whether to go ahead. A run of this name that has not ended is stopped first, if that is what is wanted."""
    if plan.active is None:
        enough = plan.offers and not plan.short_of
        doubt = "" if enough else " It cannot run now: it waits if its `retry` says so, or fails."
        return options.yes or confirm(f"Submit the run {plan.name}?{doubt}")
    active = plan.active
    if not options.force:
        unchanged = await _unchanged(client, options.project, active, document)
        same = ", with this same configuration" if unchanged else ""
        said = f"Run {plan.name} is already {active.status}{same}"
        if options.yes:
            hint = f"--force stops it and starts this one; `perdure logs {plan.name} -f` follows it"
            raise Conflict(said, hint=hint)
        if ask(f"{said}. Stop it and start this one, or leave it?", {"s": "stop", "l": "leave"}, "l") != "s":
            return False
    with say().status(f"Stopping the run {plan.name} that is {active.status} …"):
        if await client.stop(options.project, plan.name):
            await client.wait(options.project, plan.name, active.run_id)
    return True


async def _unchanged(client: PerdureClient, project: str, active: ActiveRun, document: Document) -> bool:
    run = await client.get_run(project, run_id=active.run_id)
    return run.configuration == dict(document)
