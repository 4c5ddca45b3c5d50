"""The shared checker: every scenario ends with it, at rest."""

from __future__ import annotations

from perdure.core.allocation import Offers
from perdure.store.database import Database
from perdure.store.invariants import broken


async def assert_invariants(database: Database, offers: Offers | None = None) -> None:
    """Everything that must be true of the rows when nothing moves (DESIGN section 10); with the backends' offers,
    also that nobody waits for what is free."""
    async with database.transaction() as tx:
        wrong = [one for one in await broken(tx, offers) if one.findings]
    assert not wrong, "\n".join(f"{one.invariant}:\n  " + "\n  ".join(one.findings) for one in wrong)
