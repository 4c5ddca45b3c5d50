"""Secrets: values under names, encrypted with a key that is not in here."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE secrets (
            id UUID NOT NULL,
            project_id UUID NOT NULL,
            name VARCHAR NOT NULL,
            box BYTEA NOT NULL,
            key VARCHAR NOT NULL,
            created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            created_by VARCHAR NOT NULL,
            updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
            updated_by VARCHAR NOT NULL,
            PRIMARY KEY (id),
            CONSTRAINT one_secret_a_name UNIQUE (project_id, name),
            CONSTRAINT is_a_name CHECK (name ~ '^[A-Za-z0-9_-]{1,200}$'),
            FOREIGN KEY(project_id) REFERENCES projects (id)
        )
        """
    )
