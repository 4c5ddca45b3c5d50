from __future__ import annotations

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from perdure.store import secrets
from perdure.store.database import Database
from perdure.store.secrets import Box

BOX, OTHER = Box(b"\0one\xff", "k1"), Box(b"two", "k2")


async def test_a_secret_is_kept_replaced_listed_and_deleted(database: Database):
    async with database.transaction() as tx:
        made = await secrets.put(tx, "main", "hf-token", BOX, "ann")
    assert (made.created_by, made.updated_by) == ("ann", "ann")
    assert made.created_at == made.updated_at
    async with database.transaction() as tx:
        changed = await secrets.put(tx, "main", "hf-token", OTHER, "bob")
        await secrets.put(tx, "main", "7", BOX, "")
    assert (changed.created_by, changed.updated_by) == ("ann", "bob")
    assert changed.created_at == made.created_at < changed.updated_at
    async with database.transaction() as tx:
        assert [row.name for row in await secrets.listed(tx, "main")] == ["7", "hf-token"]
        assert await secrets.boxes(tx, "main", ["hf-token", "none"]) == {"hf-token": OTHER}
        assert await secrets.delete(tx, "main", "hf-token")
        assert not await secrets.delete(tx, "main", "hf-token")
        assert await secrets.names(tx, "main") == {"7"}


async def test_projects_do_not_share_their_secrets(database: Database):
    async with database.transaction() as tx:
        await secrets.put(tx, "main", "key", BOX, "")
        await secrets.put(tx, "other", "key", OTHER, "")
        assert await secrets.boxes(tx, "main", ["key"]) == {"key": BOX}
        assert await secrets.delete(tx, "other", "key")
        assert await secrets.names(tx, "main") == {"key"}
        assert await secrets.names(tx, "nowhere") == set()
        assert not await secrets.delete(tx, "nowhere", "key")


async def test_what_happened_to_a_secret_is_an_event(database: Database):
    async with database.transaction() as tx:
        await secrets.put(tx, "main", "key", BOX, "")
    async with database.transaction() as tx:
        await secrets.put(tx, "main", "key", OTHER, "")
        await secrets.delete(tx, "main", "key")
        found = await tx.execute(text("SELECT name, status FROM events WHERE kind = 'secret' ORDER BY id"))
        assert [tuple(row) for row in found] == [("key", "set"), ("key", "changed"), ("key", "deleted")]


@pytest.mark.parametrize("name", ["", "a b", "a\n", "ä", "x" * 201])
async def test_the_database_takes_no_other_name(database: Database, name: str):
    with pytest.raises(IntegrityError, match="is_a_name"):
        async with database.transaction() as tx:
            await secrets.put(tx, "main", name, BOX, "")
