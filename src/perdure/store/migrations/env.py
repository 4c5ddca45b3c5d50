"""What Alembic runs: each step in a transaction of its own, on the connection ``migrate`` holds the lock on."""

from __future__ import annotations

from alembic import context
from sqlmodel import SQLModel

import perdure.store.tables  # noqa: F401 (fills the metadata)

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=SQLModel.metadata,
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
