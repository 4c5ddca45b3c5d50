"""Following a run that was just submitted: what it waits for, its log, its end; and what Ctrl-C means meanwhile."""

from __future__ import annotations

import asyncio
import signal
from uuid import UUID

from perdure.cli.output import LogOutput
from perdure.cli.tables import job_words, lasted
from perdure.cli.terminal import ask, interactive, say
from perdure.cli.waiting import Waiting
from perdure.client.client import PerdureClient
from perdure.client.logs import NotStarted
from perdure.model.api import RunRow
from perdure.model.statuses import JobStatus, RunStatus

LEAVE = {"s": "stop", "d": "detach", "c": "continue"}


class Attached:
    """One run, followed by one person."""

    def __init__(self, client: PerdureClient, project: str, name: str, run_id: UUID, nodes: int, *, yes: bool):
        self.client = client
        self.project = project
        self.name = name
        self.run_id = run_id
        self.nodes = nodes
        self.yes = yes
        self.output = LogOutput()
        self.waiting = Waiting(client, project, run_id)
        self._interrupts: asyncio.Queue[None] = asyncio.Queue()
        self._stops = 0

    async def follow(self) -> int:
        """The exit code: 0 if the run ended done, or was left to itself."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGINT, self._interrupts.put_nowait, None)
        work = asyncio.create_task(self._follow())
        try:
            while True:
                interrupted = asyncio.create_task(self._interrupts.get())
                await asyncio.wait([work, interrupted], return_when=asyncio.FIRST_COMPLETED)
                if work.done():
                    interrupted.cancel()
                    return self._say_end(work.result())
                if not await self._stay():
                    say().print(f"Detached. Run {self.name} goes on; `perdure logs {self.name} -f` follows it.")
                    return 0
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            await self.waiting.stop()

    async def _follow(self) -> RunRow:
        self.client.be_patient()
        self.waiting.start()
        await self.client.registered(self.project, self.name, self.run_id)
        if self.nodes > 1:
            say().print(
                f"This shows node 0 of {self.nodes}; for another: perdure logs {self.name} --job N", style="dim"
            )
        pieces = self.client.follow_logs(self.project, self.name, run_id=self.run_id)
        try:
            async for piece in pieces:
                if piece.data:
                    await self.waiting.started()
                self.output.write(piece)
                if piece.complete:
                    self.waiting.start()
        except NotStarted:
            pass  # it ended before a job began: its end says why
        run = await self.client.wait(self.project, self.name, self.run_id)
        await self.waiting.stop()
        return run

    async def _stay(self) -> bool:
        """After Ctrl-C: stop, detach or go on. False: detach."""
        if self._stops:
            await self._abort()
            return self._stops <= 2
        self.output.end_line()
        await self.waiting.stop()
        if self.yes or not interactive():
            return False
        match self._ask():
            case "s":
                self._stops = 1
                await self.client.stop(self.project, self.name)
                say().print("Stopping; Ctrl-C again aborts.")
            case "d":
                return False
            case _:
                self.waiting.start()
        return True

    async def _abort(self) -> None:
        self._stops += 1
        if self._stops == 2:
            say().print("Aborting; Ctrl-C again leaves it to itself.")
            await self.client.stop(self.project, self.name, abort=True)

    def _ask(self) -> str:
        """Blocks the loop: nothing is written over the question. Ctrl-C at it means stop."""
        say().print()
        try:
            return ask(f"Stop run {self.name}, detach from it, or continue?", LEAVE, "c")
        except KeyboardInterrupt:
            say().print()
            return "s"

    def _say_end(self, run: RunRow) -> int:
        self.output.end_line()
        done = run.status == RunStatus.DONE
        jobs = run.last_attempt
        code = "" if run.exit_status is None else f", exit code {run.exit_status}"
        style = "green" if done else "yellow" if run.status == RunStatus.TERMINATED else "bold red"
        say().print(f"Run {run.name} {run.status} after {lasted(run)}{code}.", style=style)
        if not done:
            if run.message:
                say().print(f"  {run.message}", markup=False)
            for job in jobs if len(jobs) > 1 else ():
                words = f"node {job.node} {job_words(job)}"
                if job.status != JobStatus.DONE and words != run.message:
                    say().print(f"  {words}", markup=False)
        return 0 if done else 1
