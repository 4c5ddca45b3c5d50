"""The runner's half of a process job.

What a job gets: a session and a folder of its own, which is ``HOME`` and, unless it names another, its working
directory; the host's network, devices and programs; the variables of ``perdure.agents.environment``. Where
bubblewrap works (``sandbox``), also a pid namespace, and Perdure's state hidden from it. As root, jobs run as
``nobody`` unless they name a user, and a user must be able to reach ``work_dir``. Limits of memory and CPU need an
image: a process has the whole host.

A path outside of the job's folder, such as ``/workspace``, is the job's own too, by bubblewrap; without it such a
path is refused. Nothing is ever written to the host's.
"""

from __future__ import annotations

import asyncio
import marshal
import signal
import subprocess
from pathlib import Path

from perdure.agents import disk, identity
from perdure.agents.execution import ExecutionError, Exit
from perdure.agents.instance import Instance
from perdure.agents.process import layout, sandbox, tree
from perdure.agents.process.files import ProcessFiles
from perdure.agents.process.layout import KeeperSpec
from perdure.agents.process.user import JobUser
from perdure.agents.protocol import RunAnswer, SubmitBody, TaskConfig
from perdure.model.statuses import JobReason

_KEEPER = Path(__file__).with_name("keeper.py")
_LOST = "Its keeper was killed, and with it went the exit status."
_REBOOTED = "The host restarted while the job was running."


class ProcessExecution:
    def __init__(self, task: TaskConfig, folder: Path, instance: Instance):
        self._task = task
        self._files = ProcessFiles.of(folder, instance.work_dir, task.id)
        self._instance = instance
        self._started: subprocess.Popen[bytes] | None = None

    async def start(self, job: SubmitBody) -> RunAnswer:
        """Lay out the job's folder and start the keeper; only answers if there is or was one.

        Raises:
            ExecutionError
        """
        user = JobUser.of(self._task.container_user)
        places = layout.places(job, self._task, self._files)
        answer = RunAnswer(working_dir=str(places.working_dir), username=user.name)
        lock = disk.Lock.take(self._files.lock)
        if lock is None:
            await self._keeper_written()
            return answer
        try:
            if self._files.keeper() is None:
                spec = await asyncio.to_thread(
                    layout.build, job, self._task, self._files, places, user, self._instance, sandbox.probe()
                )
                self._start_keeper(spec, lock)
                await self._keeper_written()
        finally:
            lock.close()
        return answer

    async def wait(self) -> Exit:
        """Until the keeper has ended.

        Raises:
            ExecutionError: the process could not be started, or the keeper is gone without a word.
        """
        keeper = self._files.keeper()
        if keeper is not None:
            await keeper.gone()
        if self._started is not None:
            await asyncio.to_thread(self._started.wait)
        record = self._files.exit()
        if record is None:
            await tree.kill(self._files, self._task.id)
            record = self._files.exit()
        if record is None:
            rebooted = keeper is not None and keeper.boot != identity.boot_id()
            raise ExecutionError(JobReason.EXECUTOR_ERROR, _REBOOTED if rebooted else _LOST)
        if record.failed:
            raise ExecutionError(JobReason.EXECUTOR_ERROR, record.message)
        message = record.message
        if record.lost:
            message += f" The disk was full: the last {record.lost} bytes of the log are missing."
        return Exit(record.status, message.strip())

    async def signal(self, name: str) -> None:
        """To every process of the job."""
        tree.send(self._files, signal.Signals[name])

    async def kill(self) -> None:
        """Every process of the job, and the keeper's last word is on disk."""
        await tree.kill(self._files, self._task.id)

    def _start_keeper(self, spec: KeeperSpec, lock: disk.Lock) -> None:
        disk.write_bytes(self._files.spec, marshal.dumps(spec.model_dump()))
        command = [spec.python, "-S", "-E", "-I", str(_KEEPER), str(self._files.spec), str(lock.fd)]
        self._started = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            pass_fds=[lock.fd],
            start_new_session=True,
            env={},
            cwd="/",
        )

    async def _keeper_written(self) -> None:
        """Until the keeper has said who it is, or is gone."""
        while self._files.keeper() is None:
            if self._started is not None and self._started.poll() is not None:
                raise ExecutionError(JobReason.EXECUTOR_ERROR, "The keeper of the job could not be started.")
            if self._started is None and not disk.held(self._files.lock):
                raise ExecutionError(JobReason.EXECUTOR_ERROR, _LOST)
            await asyncio.sleep(0.002)
