"""``perdure logs``."""

from __future__ import annotations

from perdure.cli.output import LogOutput
from perdure.cli.session import with_client
from perdure.cli.terminal import say
from perdure.client.client import PerdureClient
from perdure.client.logs import NotStarted


def show(project: str, name: str, *, follow: bool, slot: tuple[int, int], attempt: int | None) -> None:
    async def copy(client: PerdureClient) -> None:
        output = LogOutput()
        replica, node = slot
        try:
            pieces = client.follow_logs(project, name, replica=replica, node=node, attempt=attempt, wait=follow)
            async for piece in pieces:
                client.be_patient()
                output.write(piece)
        except NotStarted as nothing:
            say().print(f"{nothing.message[:1].upper()}{nothing.message[1:]}.", markup=False)
        output.end_line()

    with_client(copy)
