"""The shim's process. Its folder::

instance.json   whom it serves; written before it starts
shim.sock       where it listens (mode 0600)
shim.pid        the process (pid, start time, boot) as JSON
shim.log
fences.json     the highest submission of each slot
tasks/{id}/     config.json  task.json  and what the runner keeps there
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import logging.handlers
import os
import signal
import sys
from pathlib import Path

from perdure.agents import disk, http
from perdure.agents.identity import Process
from perdure.agents.instance import Instance
from perdure.agents.process import sandbox
from perdure.agents.shim.app import ShimApi
from perdure.agents.shim.tasks import Tasks
from perdure.agents.shim.zygote import Zygote

_LOG = logging.getLogger("perdure.shim")


def main() -> None:
    """Serve the instance of ``--folder`` until SIGTERM. Jobs go on without it."""
    parser = argparse.ArgumentParser(prog="perdure-shim", description="Owns the jobs of one instance.")
    parser.add_argument("--folder", type=Path, required=True, help="the instance's folder, with instance.json")
    folder: Path = parser.parse_args().folder.absolute()
    lock = disk.Lock.take(folder / "shim.lock")
    if lock is None:
        sys.exit(f"A shim already serves {folder}.")
    _log_to(folder / "shim.log")
    me = Process.of(os.getpid())
    assert me is not None
    disk.write(folder / "shim.pid", me)
    asyncio.run(_serve(folder))


async def _serve(folder: Path) -> None:
    instance = Instance.load(folder)
    zygote = Zygote()
    zygote.warm()
    how = await asyncio.to_thread(sandbox.probe)
    _LOG.info("instance %s; process jobs in %s", instance.instance_id, how or "no sandbox")
    tasks = Tasks(folder, instance, zygote)
    tasks.adopt()
    server = http.Server(ShimApi(instance, tasks).app())
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, server.leave)
    await server.serve([http.listen(folder / "shim.sock")])
    zygote.close()


def _log_to(path: Path) -> None:
    handler = logging.handlers.RotatingFileHandler(path, maxBytes=10_000_000, backupCount=1)
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s", handlers=[handler], force=True
    )
