"""What a worker is told by its environment."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import ValidationError

from perdure.model.timing import Timing
from perdure.stack.home import Home, StackError

EXAMPLE = "postgresql://user:password@host/database"


def check_url(url: str) -> None:
    """Raises: StackError, which never shows the password in it."""
    if urlsplit(url).scheme not in ("postgresql", "postgres", "postgresql+asyncpg"):
        raise StackError("the database's address is not one of Postgres", hint=EXAMPLE)


@dataclass(frozen=True)
class Settings:
    """
    ======================  ==============================================================================
    PERDURE_DATABASE_URL    Postgres, ``postgresql://…``. Needed.
    PERDURE_BLOBS           Folder of code and logs. ``PERDURE_HOME/blobs``.
    PERDURE_KEY_FILE        The key that opens what clients sealed; made if absent. ``PERDURE_HOME/key``.
    PERDURE_WORKER          This worker's lasting name. The host's name.
    PERDURE_LOCAL           1: this machine is a backend (``local``). 0.
    PERDURE_LOCAL_FLEET     1: make sure that there is a fleet ``local`` in project ``main``. 0.
    PERDURE_TIMING          JSON of ``perdure.model.timing.Timing``, what differs from the defaults.
    PERDURE_READY_FILE      Where to write the pid when ready.
    PERDURE_SANDBOX         1: workflows in Temporal's sandbox, which finds what is not deterministic. 0.
    PERDURE_DURABLE         1: a log is on the disk before it counts; a power cut then loses none of it. 0.
    PERDURE_CODE_LIMIT      Bytes of one code archive. 2 GiB.
    PERDURE_RETENTION_DAYS  How long finished runs, their logs and code are kept. 30.
    ======================  ==============================================================================

    Temporal's address, namespace, TLS and key are Temporal's own: ``TEMPORAL_*`` and its configuration file.
    """

    home: Home
    database_url: str
    blobs: Path
    key_file: Path
    worker: str
    local: bool
    local_fleet: bool
    timing: Timing
    ready_file: Path | None
    sandbox: bool
    durable: bool
    code_limit: int
    retention_days: float

    @classmethod
    def read(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        """Raises: StackError"""
        home = Home.find(environ)
        database_url = environ.get("PERDURE_DATABASE_URL")
        if not database_url:
            raise StackError("PERDURE_DATABASE_URL is not set", hint=EXAMPLE)
        check_url(database_url)
        try:
            timing = Timing.model_validate_json(environ.get("PERDURE_TIMING") or "{}")
            code_limit = int(environ.get("PERDURE_CODE_LIMIT") or 2 * 1024**3)
            retention_days = float(environ.get("PERDURE_RETENTION_DAYS") or 30)
        except ValidationError as error:
            raise StackError(f"PERDURE_TIMING is not valid: {error.errors()[0]['msg']}") from None
        except ValueError as error:
            raise StackError(f"PERDURE_CODE_LIMIT or PERDURE_RETENTION_DAYS is not a number: {error}") from None
        ready_file = environ.get("PERDURE_READY_FILE")
        return cls(
            home=home,
            database_url=database_url,
            blobs=Path(environ.get("PERDURE_BLOBS") or home.blobs),
            key_file=Path(environ.get("PERDURE_KEY_FILE") or home.key_file),
            worker=environ.get("PERDURE_WORKER") or socket.gethostname(),
            local=environ.get("PERDURE_LOCAL") == "1",
            local_fleet=environ.get("PERDURE_LOCAL_FLEET") == "1",
            timing=timing,
            ready_file=Path(ready_file) if ready_file else None,
            sandbox=environ.get("PERDURE_SANDBOX") == "1",
            durable=environ.get("PERDURE_DURABLE") == "1",
            code_limit=code_limit,
            retention_days=retention_days,
        )
