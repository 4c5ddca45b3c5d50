"""Runs with a schedule: ``perdure run trigger``, ``pause`` and ``resume``, and ``perdure stop --occurrence``."""

from __future__ import annotations

import asyncio

from perdure.cli.session import with_client
from perdure.cli.terminal import confirm, interactive, say
from perdure.client.client import PerdureClient, user_name
from perdure.model.statuses import RunStatus

LOOK_EVERY = 0.25
"""Seconds."""


def trigger(project: str, name: str) -> None:
    async def work(client: PerdureClient) -> None:
        await client.schedules.trigger(project, name, user_name())

    with_client(work)
    say().print(f"An occurrence of {name} begins. Follow it with: perdure logs {name} -f", markup=False)


def pause(project: str, name: str) -> None:
    async def work(client: PerdureClient) -> None:
        await client.schedules.pause(project, name, user_name())

    with_client(work)
    say().print(f"The schedule of {name} is paused. It goes on with: perdure run resume {name}", markup=False)


def resume(project: str, name: str) -> None:
    async def work(client: PerdureClient) -> None:
        await client.schedules.resume(project, name, user_name())

    with_client(work)
    say().print(f"The schedule of {name} goes on; when next: perdure run get {name}", markup=False)


def stop_occurrence(project: str, name: str, *, abort: bool, yes: bool) -> int:
    """The exit code; returns when the occurrence is over."""
    verb = "Abort" if abort else "Stop"
    if not yes and interactive() and not confirm(f"{verb} what runs of {name} now, and leave its schedule?"):
        return 0

    async def work(client: PerdureClient) -> None:
        await client.schedules.stop_occurrence(project, name, user_name(), abort=abort)
        client.be_patient()
        with say().status(f"Ending the occurrence of {name} …"):
            run = await client.get_run(project, name)
            while not (run.status == RunStatus.PENDING or RunStatus(run.status).final):
                await asyncio.sleep(LOOK_EVERY)
                run = await client.get_run(project, name, run.run_id)
        said = f"; {run.message}" if run.message else ""
        say().print(f"The occurrence of {name} has ended. The run is {run.status}{said}.", markup=False)

    with_client(work)
    return 0
