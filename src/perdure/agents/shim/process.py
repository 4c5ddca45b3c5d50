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
import contextlib
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

_LOOK_EVERY = 2.0
"""Seconds between two looks at the folder; it is gone when two in a row do not find it."""


def main() -> None:
    """Serve the instance of ``--folder`` until SIGTERM. Jobs go on without it, but end with the folder."""
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
    asyncio.run(_serve(folder, folder.stat().st_ino))


async def _serve(folder: Path, inode: int) -> None:
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
    leaving = asyncio.create_task(_leave_with(folder, inode, tasks, instance, server))
    await server.serve([http.listen(folder / "shim.sock")])
    leaving.cancel()
    zygote.close()


async def _leave_with(folder: Path, inode: int, tasks: Tasks, instance: Instance, server: http.Server) -> None:
    """Once somebody deleted the folder, end all tasks and the process: nobody could reach them any more."""
    missed = 0
    while missed < 2:
        await asyncio.sleep(_LOOK_EVERY)
        missed = 0 if _is_there(folder, inode) else missed + 1
    _LOG.critical("%s was deleted: everything of this instance ends", folder)
    await tasks.vanish()
    with contextlib.suppress(OSError):  # what is in it that is no task's stays
        instance.work_dir.rmdir()
    server.leave()


def _is_there(folder: Path, inode: int) -> bool:
    try:
        return folder.stat().st_ino == inode and (folder / "instance.json").exists()
    except FileNotFoundError:
        return False


def _log_to(path: Path) -> None:
    handler = logging.handlers.RotatingFileHandler(path, maxBytes=10_000_000, backupCount=1)
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s", handlers=[handler], force=True
    )
