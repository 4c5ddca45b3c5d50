"""``perdure stop``."""

from __future__ import annotations

from perdure.cli.session import with_client
from perdure.cli.tables import lasted
from perdure.cli.terminal import confirm, interactive, say
from perdure.client.client import PerdureClient


def stop(project: str, name: str, *, abort: bool, yes: bool) -> int:
    """Ask for it, wait for it, say how it ended."""
    verb = "Abort" if abort else "Stop"
    if not yes and interactive() and not confirm(f"{verb} run {name}?"):
        return 0

    async def work(client: PerdureClient) -> int:
        run = await client.get_run(project, name)
        if not await client.stop(project, name, abort=abort):
            say().print(f"Run {name} has ended already: {run.status}.")
            return 0
        client.be_patient()
        with say().status(f"{verb}ping {name} …" if not abort else f"Aborting {name} …"):
            ended = await client.wait(project, name, run.run_id)
        say().print(f"Run {name} {ended.status} after {lasted(ended)}.")
        return 0

    return with_client(work)
