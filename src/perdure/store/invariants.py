"""What must be true of the rows at rest, as one checker for tests and for ``perdure doctor`` (DESIGN section 10).

At rest: nothing is under way. While work is going on, a check may see the middle of a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from perdure.core.allocation import Offers
from perdure.store import projects, queue


@dataclass(frozen=True)
class Broken:
    """One invariant, and each thing that breaks it; none: it holds."""

    invariant: str
    findings: tuple[str, ...] = ()


_CHECKS: tuple[tuple[str, str], ...] = (
    (
        "each block has one living holder, and busy_blocks counts them",
        """
        SELECT i.name || ': busy_blocks is ' || i.busy_blocks || ', held are ' || count(h.block)
        FROM instances i LEFT JOIN holdings h ON h.instance_id = i.id
        GROUP BY i.id HAVING count(h.block) <> i.busy_blocks
        """,
    ),
    (
        "no block is held on an instance that is gone",
        """
        SELECT i.name || ' is terminated and held' FROM instances i JOIN holdings h ON h.instance_id = i.id
        WHERE i.status = 'terminated'
        """,
    ),
    (
        "a held block is one of its instance's",
        """
        SELECT i.name || ': block ' || h.block || ' of ' || i.total_blocks
        FROM instances i JOIN holdings h ON h.instance_id = i.id WHERE h.block NOT BETWEEN 0 AND i.total_blocks - 1
        """,
    ),
    (
        "a fleet has at most nodes.max instances",
        """
        SELECT f.name || ' has ' || count(*) || ' of at most ' || f.nodes_max
        FROM fleets f JOIN instances i ON i.fleet_id = f.id
        WHERE i.status NOT IN ('terminating', 'terminated') GROUP BY f.id HAVING count(*) > f.nodes_max
        """,
    ),
    (
        "a claim holds blocks if, and only if, it is granted",
        """
        SELECT 'claim ' || c.id || ' is ' || c.status || ' and holds ' || count(h.block)
        FROM claims c LEFT JOIN holdings h ON h.claim_id = c.id AND h.quarantined_at IS NULL
        GROUP BY c.id HAVING (count(h.block) > 0 AND c.status NOT IN ('granted', 'ready'))
            OR (count(h.block) = 0 AND c.status IN ('granted', 'ready') AND NOT EXISTS (
                SELECT 1 FROM holdings q WHERE q.claim_id = c.id))
        """,
    ),
    (
        "a claim that is still gathering holds all its nodes or none",
        """
        SELECT 'claim ' || c.id || ' holds ' || count(DISTINCT h.node) || ' of ' || c.nodes || ' nodes'
        FROM claims c JOIN holdings h ON h.claim_id = c.id
        WHERE c.status = 'granted' GROUP BY c.id HAVING count(DISTINCT h.node) <> c.nodes
        """,
    ),
    (
        "one node of a claim is on one instance",
        """
        SELECT 'claim ' || claim_id || ' node ' || node || ' is on ' || count(DISTINCT instance_id) || ' instances'
        FROM holdings GROUP BY claim_id, node HAVING count(DISTINCT instance_id) > 1
        """,
    ),
    (
        "a run that has ended holds nothing and has no living job",
        """
        SELECT r.name || ' (' || r.id || ') has ended, and ' || what.it FROM runs r CROSS JOIN LATERAL (
            SELECT 'claim ' || c.id || ' is ' || c.status AS it FROM claims c
            WHERE c.run_id = r.id AND (c.status = 'waiting' OR EXISTS (
                SELECT 1 FROM holdings h WHERE h.claim_id = c.id AND h.quarantined_at IS NULL))
            UNION ALL
            SELECT 'job ' || j.id || ' is ' || j.status FROM jobs j WHERE j.run_id = r.id AND j.ended_at IS NULL
        ) what WHERE r.ended_at IS NOT NULL
        """,
    ),
    (
        "a job has an end, with its reason, if, and only if, its status is final",
        """
        SELECT 'job ' || id || ' is ' || status || ', its end is ' || coalesce(CAST(ended_at AS text), 'not set')
        FROM jobs WHERE (status IN ('terminated', 'aborted', 'failed', 'done'))
            <> (ended_at IS NOT NULL AND reason IS NOT NULL)
        """,
    ),
    (
        "a run has an end only in a final status",
        """
        SELECT name || ' (' || id || ') has ended and is ' || status FROM runs
        WHERE ended_at IS NOT NULL AND status NOT IN ('terminated', 'failed', 'done')
        """,
    ),
    (
        "at most one submission of a job lives",
        """
        SELECT 'run ' || run_id || ' job ' || replica || '-' || node || ' has ' || count(*) || ' living submissions'
        FROM jobs WHERE ended_at IS NULL GROUP BY run_id, replica, node HAVING count(*) > 1
        """,
    ),
    (
        "a job that lives holds its block",
        """
        SELECT 'job ' || j.id || ' is ' || j.status || ' and holds nothing' FROM jobs j
        JOIN instances i ON i.id = j.instance_id AND i.status NOT IN ('terminating', 'terminated')
        WHERE j.ended_at IS NULL AND NOT EXISTS (
            SELECT 1 FROM holdings h
            WHERE h.claim_id = j.claim_id AND h.node = j.node AND h.instance_id = j.instance_id)
        """,
    ),
)


async def broken(tx: AsyncConnection, offers: Offers | None = None) -> Sequence[Broken]:
    """Every invariant that concerns rows, with what breaks it.

    Args:
        offers: what the backends could make; with it, waiting claims that fit are found too. Takes the projects'
            locks, and rolls back what it tried.
    """
    found = [
        Broken(invariant, tuple(row[0] for row in await tx.execute(text(query)))) for invariant, query in _CHECKS
    ]
    if offers is not None:
        found.append(Broken("no claim that fits is left waiting", await _left_waiting(tx, offers)))
    return found


async def _left_waiting(tx: AsyncConnection, offers: Offers) -> tuple[str, ...]:
    """What a walk along each queue would still grant."""
    attempt = await tx.begin_nested()
    left: list[str] = []
    for row in (await tx.execute(text("SELECT id FROM projects ORDER BY id"))).all():
        await projects.lock(tx, row.id)
        left += [f"claim {it.claim_id} fits and waits" for it in await queue.grant_waiting(tx, row.id, offers)]
    await attempt.rollback()
    return tuple(left)
