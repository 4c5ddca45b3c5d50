"""The pool of connections, and transactions, with who makes them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar

import asyncpg
from sqlalchemy import URL, make_url, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from perdure.model.errors import ControlPlaneError

POOL = 20
"""Connections of one worker: at least its workflow-task slots, each of which may run a transaction."""

_AWAY: tuple[type[Exception], ...] = (
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.InternalClientError,
)
"""What asyncpg raises, beside an OSError, when its server goes away, starts or stops. The last one: it died in the
middle of a query, and the pieces of its answer came in an order that asyncpg does not know."""

_ACTOR: ContextVar[str] = ContextVar("actor", default="")
_ACT = text("SELECT set_config('perdure.actor', :actor, true)")


@contextmanager
def acting(actor: str) -> Iterator[None]:
    """Of the transactions within, this is who or what the events name: ``sweep``, ``user ann``.

    Others need not say: what a workflow, an agent or a run's user does, the rows tell.
    """
    token = _ACTOR.set(actor)
    try:
        yield
    finally:
        _ACTOR.reset(token)


def driver_url(url: str) -> URL:
    """The same database through asyncpg, whatever dialect of URL was given."""
    return make_url(url).set(drivername="postgresql+asyncpg")


class Database:
    """One installation's database. Make one a process."""

    def __init__(self, url: str, *, pool: int = POOL):
        self.url = url
        self._engine = create_async_engine(driver_url(url), pool_size=pool, max_overflow=0, pool_timeout=10)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """One transaction: committed at the end of the block, rolled back if it raises.

        Raises:
            ControlPlaneError: the database cannot be reached, or went away. Safe to try again: every write of
                ours may be repeated.
        """
        try:
            async with self._engine.begin() as connection:
                if actor := _ACTOR.get():
                    await connection.execute(_ACT, {"actor": actor})
                yield connection
        except DBAPIError as error:
            if error.connection_invalidated:
                raise ControlPlaneError("the database went away") from error
            cause = error.orig.__cause__ if error.orig is not None else None
            if isinstance(cause, _AWAY):
                raise ControlPlaneError(f"the database cannot be reached: {cause}") from error
            raise
        except OSError as error:
            raise ControlPlaneError(f"the database cannot be reached: {error}") from error

    async def close(self) -> None:
        await self._engine.dispose()
