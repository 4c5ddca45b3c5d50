"""Secrets: set, got, listed and deleted. A value comes sealed and goes sealed; in between it is in memory alone."""

from __future__ import annotations

from temporalio import activity

from activities.errors import translated
from activities.seal import unsealed
from activities.vault import Vault
from activities.world import World
from perdure.client.seal import seal
from perdure.model import api
from perdure.model.errors import NotFound, UserError
from perdure.model.messages import Nothing
from perdure.model.secrets import check_secret_name, check_secret_value
from perdure.store import secrets
from perdure.store.database import acting


class Secrets:
    def __init__(self, world: World):
        self._world = world
        self._vault = Vault(world.private_key)

    @activity.defn(name=api.SET_SECRET.name)
    @translated
    async def set_secret(self, wish: api.SetSecret) -> api.SecretRow:
        """Keep a value. Safe to repeat.

        Raises:
            UserError: its name or its value is none.
            CannotOpen: it was not sealed for us.
        """
        check_secret_name(wish.project, wish.name)
        value = unsealed(self._world.private_key, wish.sealed, f"the value of the secret {wish.name}")
        check_secret_value(wish.name, value)
        box = self._vault.lock(wish.project, wish.name, value)
        async with self._world.database.transaction() as tx:
            return await secrets.put(tx, wish.project, wish.name, box, wish.user)

    @activity.defn(name=api.GET_SECRET.name)
    @translated
    async def get_secret(self, question: api.GetSecret) -> api.SecretValue:
        """The value, for the one who asks alone.

        Raises:
            NotFound
            CannotOpen: this worker's key does not open it.
            UserError: ``recipient`` is no key.
        """
        check_secret_name(question.project, question.name)
        async with self._world.database.transaction() as tx:
            found = await secrets.boxes(tx, question.project, [question.name])
        if question.name not in found:
            raise NotFound(
                f"there is no secret {question.name} in project {question.project}",
                hint="`perdure secret` lists them",
            )
        value = self._vault.unlock(question.project, question.name, found[question.name])
        try:
            return api.SecretValue(sealed=seal(question.recipient, value))
        except ValueError:
            raise UserError("the recipient is not an X25519 public key, as base64") from None

    @activity.defn(name=api.LIST_SECRETS.name)
    @translated
    async def list_secrets(self, query: api.SecretQuery) -> api.SecretRows:
        """Names, and who set them when. Never values."""
        async with self._world.database.transaction() as tx:
            return api.SecretRows(secrets=tuple(await secrets.listed(tx, query.project)))

    @activity.defn(name=api.DELETE_SECRET.name)
    @translated
    async def delete_secret(self, wish: api.DeleteSecret) -> Nothing:
        """Forget a value. Safe to repeat: one that is not there is deleted."""
        with acting(f"user {wish.user}".rstrip()):
            async with self._world.database.transaction() as tx:
                await secrets.delete(tx, wish.project, wish.name)
        return Nothing()
