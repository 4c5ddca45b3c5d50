"""``perdure apply`` of a fleet."""

from __future__ import annotations

from perdure.cli.session import with_client
from perdure.cli.terminal import confirm, say
from perdure.client.client import PerdureClient, user_name
from perdure.model.errors import FieldError, InvalidConfiguration
from perdure.model.ids import RESOURCE_NAME
from perdure.spec.document import Document


def apply(document: Document, project: str, *, yes: bool) -> int:
    """The exit code."""
    name = document.get("name")
    if not isinstance(name, str) or not RESOURCE_NAME.match(name):
        raise InvalidConfiguration(
            [
                FieldError(
                    path="name", message="a fleet needs a name", hint="1 to 41 of a-z, 0-9 and -; a letter first"
                )
            ]
        )

    async def work(client: PerdureClient) -> int:
        there = {fleet.name for fleet in await client.fleets(project)}
        question = f"Change the fleet {name}?" if name in there else f"Make the fleet {name}?"
        if not yes and not confirm(question):
            return 0
        new = await client.apply_fleet(project, name, document, user_name())
        say().print(f"Fleet {name} is {'made' if new else 'changed'}; `perdure fleet` shows its instances.")
        return 0

    return with_client(work)
