"""Events: of a run that was refused there is no row by which its name could be looked up."""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.execute("CREATE INDEX events_of_refused ON events (name) WHERE kind = 'run' AND status = 'refused'")
