"""Letting go of what is old: runs that ended long ago, and code that nothing has used since."""

from __future__ import annotations

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from perdure.model.ids import code_key, log_key

BATCH = 500
"""Runs of one pass, so that no transaction is long."""

_OLD_RUNS = text("""
    SELECT r.id FROM runs r
    WHERE coalesce(r.ended_at, CASE WHEN r.superseded_by IS NOT NULL THEN r.recorded_at END)
              < now() - CAST(:days AS float) * interval '1 day'
      AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.run_id = r.id AND j.ended_at IS NULL)
      AND NOT EXISTS (SELECT 1 FROM claims c JOIN holdings h ON h.claim_id = c.id WHERE c.run_id = r.id)
    ORDER BY r.submitted_at LIMIT :limit FOR UPDATE OF r SKIP LOCKED
""")

_OLD_CODE = text("""
    DELETE FROM archives a
    WHERE a.used_at < now() - CAST(:days AS float) * interval '1 day'
      AND NOT EXISTS (
          SELECT 1 FROM runs r WHERE r.spec -> 'code' @> jsonb_build_array(jsonb_build_object('sha256', a.sha256)))
    RETURNING a.sha256
""")

_OLD_INSTANCES = text("""
    DELETE FROM instances i
    WHERE i.status = 'terminated' AND i.ended_at < now() - CAST(:days AS float) * interval '1 day'
      AND NOT EXISTS (SELECT 1 FROM jobs j WHERE j.instance_id = i.id)
""")


async def forget(tx: AsyncConnection, days: float) -> list[str]:
    """Delete runs that ended more than ``days`` ago with their claims, jobs and events, code that nobody uses,
    and instances that are long gone.

    Returns:
        Keys in the blob store that nothing refers to any more: logs and code. Delete them after the transaction;
        a key that is left behind by a crash is only space.
    """
    found = [row.id for row in await tx.execute(_OLD_RUNS, {"days": days, "limit": BATCH})]
    jobs = [
        row.id for row in await tx.execute(text("SELECT id FROM jobs WHERE run_id = ANY(:runs)"), {"runs": found})
    ]
    await tx.execute(text("DELETE FROM events WHERE run_id = ANY(:runs)"), {"runs": found})
    await tx.execute(text("DELETE FROM runs WHERE id = ANY(:runs)"), {"runs": found})
    code = [row.sha256 for row in await tx.execute(_OLD_CODE, {"days": days})]
    await tx.execute(_OLD_INSTANCES, {"days": days})
    old = text("DELETE FROM events WHERE at < now() - CAST(:days AS float) * interval '1 day'")
    await tx.execute(old, {"days": days})
    return [log_key(job) for job in jobs] + [code_key(sha256) for sha256 in code]
