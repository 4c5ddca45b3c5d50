"""The runner's process: alone in its task's folder, in a session of its own, serving until it is killed.

``config.json`` there is the shim's TaskConfig. ``runner.json`` says which process serves; a second one leaves once
the first takes calls, and one whose folder was removed leaves too.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

from perdure.agents import disk, http
from perdure.agents.execution import Execution, ExecutionError, Exit
from perdure.agents.executors import execution
from perdure.agents.identity import Process
from perdure.agents.instance import Instance
from perdure.agents.protocol import RunAnswer, SubmitBody, TaskConfig
from perdure.agents.runner.app import RunnerApi
from perdure.agents.runner.job import Job
from perdure.agents.runner.logs import Log
from perdure.agents.runner.record import Phase

_LOG = logging.getLogger("perdure.runner")
_LOOK_EVERY = 15.0


def main() -> None:
    """Serve the task of ``--folder`` in the foreground."""
    parser = argparse.ArgumentParser(prog="perdure-runner", description="Runs one job. Started by perdure-shim.")
    parser.add_argument("--folder", type=Path, required=True, help="the task's folder")
    serve(parser.parse_args().folder, lambda: None)


def serve(folder: Path, ready: Callable[[], None]) -> None:
    """Serve the task in ``folder``. ``ready`` is called once calls are accepted."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s", force=True)
    for signum in (signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    while (lock := disk.Lock.take(folder / "runner.lock")) is None:
        if _takes_calls(folder / "runner.sock"):
            ready()
            return
        time.sleep(0.01)
    me = Process.of(os.getpid())
    assert me is not None
    disk.write(folder / "runner.json", me)
    asyncio.run(_serve(folder, ready))
    lock.close()


async def _serve(folder: Path, ready: Callable[[], None]) -> None:
    instance = Instance.load(folder.parent.parent)
    task = disk.read(folder / "config.json", TaskConfig)
    assert task is not None
    job = Job(folder, _execution(task, folder, instance))
    log = Log(folder / "log", lambda: job.record.phase is Phase.ENDED)
    job.on_change = log.wake
    job.adopt()
    staying = asyncio.create_task(_leave_with(folder))
    listener = http.listen(folder / "runner.sock")
    server = http.Server(RunnerApi(instance, job, log).app())
    asyncio.get_running_loop().call_soon(ready)
    await server.serve([listener])
    staying.cancel()


async def _leave_with(folder: Path) -> None:
    """End the process once its folder is gone: nobody could reach it any more."""
    while _is_there(folder):  # noqa: ASYNC110  nothing tells us of it
        await asyncio.sleep(_LOOK_EVERY)
    _LOG.warning("the task was removed")
    os._exit(0)


def _takes_calls(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as there:
        try:
            there.connect(str(path))
        except OSError:
            return False
    return True


def _is_there(folder: Path) -> bool:
    return folder.exists()


def _execution(task: TaskConfig, folder: Path, instance: Instance) -> Execution:
    try:
        return execution(task, folder, instance)
    except ExecutionError as error:
        return _Impossible(error)


class _Impossible:
    """Says at the start of a job why it cannot run here: its container engine is gone."""

    def __init__(self, error: ExecutionError):
        self._error = error

    async def start(self, job: SubmitBody) -> RunAnswer:
        raise self._error

    async def wait(self) -> Exit:
        raise self._error

    async def signal(self, name: str) -> None: ...

    async def kill(self) -> None: ...
