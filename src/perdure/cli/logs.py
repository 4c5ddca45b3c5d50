"""``perdure logs``."""

from __future__ import annotations

from perdure.cli.output import LogOutput
from perdure.cli.session import with_client
from perdure.client.client import PerdureClient


def show(project: str, name: str, *, follow: bool, slot: tuple[int, int], attempt: int | None) -> None:
    async def copy(client: PerdureClient) -> None:
        output = LogOutput()
        replica, node = slot
        async for piece in client.follow_logs(
            project, name, replica=replica, node=node, attempt=attempt, wait=follow
        ):
            output.write(piece)
        output.end_line()

    with_client(copy)
