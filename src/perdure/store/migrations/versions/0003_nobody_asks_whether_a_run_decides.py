"""Runs: without a column that nothing read."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.execute("ALTER TABLE runs DROP COLUMN deciding")
