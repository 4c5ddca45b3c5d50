"""What a run waits for: a live table while somebody watches, a line for each change otherwise."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from uuid import UUID

from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from perdure.cli.tables import pulling, status_text, why
from perdure.cli.terminal import say
from perdure.client.client import PerdureClient
from perdure.model.api import JobRow, RunRow
from perdure.model.errors import NotFound
from perdure.model.statuses import JobStatus, RunStatus

LOOK_EVERY = 0.25
"""Seconds at first; a run that waits long is looked at every ``LOOK_EVERY_MOST``."""

LOOK_EVERY_MOST = 2.0


class Waiting:
    """Shows one run's way from submitted to running, and again between two attempts."""

    def __init__(self, client: PerdureClient, project: str, run_id: UUID):
        self.client = client
        self.project = project
        self.run_id = run_id
        self._task: asyncio.Task[None] | None = None
        self._said = str(RunStatus.SUBMITTED)
        self._urls: set[str] = set()

    def start(self) -> None:
        """Show until it runs or has ended, or ``stop``."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._show())

    async def stop(self) -> None:
        """Clear the screen of it; returns when that is done."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def started(self) -> None:
        """Output has come: clear the screen, and say what there is to say of a run that runs."""
        if self._task is None:
            return
        await self.stop()
        run = await self._look()
        if run is not None and run.status == RunStatus.RUNNING:
            self._say_changes(run, None)

    async def _show(self) -> None:
        if not say().is_terminal:
            await self._watch(None)
            return
        with Live(Spinner("dots", "submitted"), console=say(), transient=True, refresh_per_second=8) as live:
            await self._watch(live)

    async def _watch(self, live: Live | None) -> None:
        pause = LOOK_EVERY
        while True:
            run = await self._look()
            if run is not None:
                self._say_changes(run, live)
                if RunStatus(run.status).final or run.status == RunStatus.RUNNING:
                    return
            await asyncio.sleep(pause)
            pause = min(pause * 1.05, LOOK_EVERY_MOST)

    async def _look(self) -> RunRow | None:
        try:
            return await self.client.get_run(self.project, run_id=self.run_id)
        except NotFound:
            return None

    def _say_changes(self, run: RunRow, live: Live | None) -> None:
        self._say_urls(run)
        if live is not None:
            live.update(_picture(run))
            return
        said = f"{run.status}: {why(run)}" if why(run) else run.status
        if said != self._said and not RunStatus(run.status).final:
            self._said = said
            say().print(f"Run {run.name} is {said}.", markup=False)

    def _say_urls(self, run: RunRow) -> None:
        for port, url in urls(run):
            if url not in self._urls:
                self._urls.add(url)
                say().print(f"Port {port}: {url}", markup=False)


def urls(run: RunRow) -> list[tuple[int, str]]:
    """(port of the job, where it is) of the jobs on this machine."""
    return [
        (port, f"http://{job.address}:{host}")
        for job in run.last_attempt
        if job.status == JobStatus.RUNNING and job.backend == "local" and job.address
        for port, host in job.ports
    ]


def _picture(run: RunRow) -> Group:
    head = Table.grid(padding=(0, 1))
    head.add_row(Spinner("dots"), Text(run.name, style="bold"), status_text(run.status), Text(why(run)))
    jobs = Table.grid(padding=(0, 2))
    for job in run.last_attempt:
        if job.status == JobStatus.PULLING and job.pull is not None and job.pull[1]:
            jobs.add_row("", f"job {job.node}", _pull_bar(job))
        else:
            jobs.add_row("", f"job {job.node}", status_text(job.status, pulling(job)))
    return Group(head, jobs)


def _pull_bar(job: JobRow) -> Progress:
    bar = Progress(TextColumn("pulling"), BarColumn(30), DownloadColumn())
    done, total = job.pull or (0, 0)
    bar.add_task("", total=total, completed=min(done, total))
    return bar
