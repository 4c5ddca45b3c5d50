"""A project's secrets, from the outside. Values leave this machine sealed for the worker, and come back sealed for
the one call that asked: Temporal sees neither."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from perdure.client.calls import Calls
from perdure.model import api
from perdure.model.errors import NotFound
from perdure.model.secrets import check_secret_name, check_secret_value

# The sealing itself is imported by those who seal: it takes as long as a command that only lists.


class Secrets:
    """``PerdureClient.secrets``."""

    def __init__(self, call: Calls, hello: Callable[[], Awaitable[api.Hello]]):
        self._call = call
        self._hello = hello

    async def set(self, project: str, name: str, value: str, user: str = "") -> api.SecretRow:
        """Keep a value under a name, in place of the one before. Jobs that start from now on get it.

        Raises:
            UserError: ``perdure.model.secrets`` says what a name and a value may be.
        """
        from perdure.client.seal import seal

        check_secret_name(project, name)
        check_secret_value(name, value)
        sealed = seal((await self._hello()).public_key, value)
        wish = api.SetSecret(project=project, name=name, sealed=sealed, user=user)
        return await self._call(api.SET_SECRET, wish)

    async def get(self, project: str, name: str) -> str:
        """The value, in the clear.

        Raises:
            NotFound
        """
        from perdure.client.seal import Recipient

        check_secret_name(project, name)
        recipient = Recipient()
        question = api.GetSecret(project=project, name=name, recipient=recipient.public_key)
        return recipient.opened((await self._call(api.GET_SECRET, question)).sealed)

    async def list(self, project: str) -> tuple[api.SecretRow, ...]:
        """All of a project, by name. No values."""
        return (await self._call(api.LIST_SECRETS, api.SecretQuery(project=project))).secrets

    async def find(self, project: str, name: str) -> api.SecretRow:
        """What is told of one.

        Raises:
            NotFound
        """
        check_secret_name(project, name)
        for row in await self.list(project):
            if row.name == name:
                return row
        raise NotFound(f"there is no secret {name} in project {project}", hint="`perdure secret` lists them")

    async def delete(self, project: str, name: str, user: str = "") -> None:
        """Forget a value. Jobs that need it and have not started will fail, saying so.

        Raises:
            NotFound: there is none.
        """
        await self.find(project, name)  # the call itself may be repeated, and does not tell
        await self._call(api.DELETE_SECRET, api.DeleteSecret(project=project, name=name, user=user))
