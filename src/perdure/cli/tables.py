"""Tables of runs, offers and fleets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from perdure.cli.terminal import out
from perdure.cli.words import STYLES, ago, duration, price, size
from perdure.model.api import FleetRow, InstanceRow, JobRow, PlannedOffer, RunRow
from perdure.model.ends import end_words
from perdure.model.resources import OfferFailure
from perdure.model.statuses import JobReason, JobStatus, RunStatus

ROOMY = 110
"""Columns of a terminal that every column of a table fits on; a narrower one is spared what can be looked up."""

WHOLE = ("NAME", "STATUS", "PRICE", "#", "NODES", "CREATED", "SUBMITTED", "FLEET")
"""Never broken over two lines."""


class Lines(Table):
    """A table whose lines end with what is written in them where nobody watches: blanks would be wrapped, too."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = super().__rich_console__(console, options)
        if console.is_terminal:
            yield from shown
            return
        for line in Segment.split_lines(cast(Iterable[Segment], shown)):
            yield Segment("".join(part.text for part in line).rstrip())
            yield Segment.line()


class Rows:
    """A table in the making. On a narrow terminal it leaves out the columns that are ``spared``."""

    def __init__(self, *columns: str, spared: tuple[str, ...] = (), width: int | None = None):
        narrow = (out().width if width is None else width) < ROOMY
        self._shown = [not (narrow and column in spared) for column in columns]
        self.table = Lines(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
        for column, shown in zip(columns, self._shown, strict=True):
            if shown:
                self.table.add_column(column, no_wrap=column in WHOLE, overflow="fold")

    def add(self, *cells: str | Text) -> None:
        self.table.add_row(*(cell for cell, shown in zip(cells, self._shown, strict=True) if shown))


def status_text(status: str, more: str = "") -> Text:
    text = Text(status, style=STYLES.get(status, ""))
    return text.append(f" {more}", style="dim") if more else text


def run_table(rows: Sequence[RunRow]) -> Table:
    """Of ``ps``: a line a run, and one each for the jobs of a run with several."""
    made = Rows("NAME", "WHERE", "RESOURCES", "PRICE", "STATUS", "SUBMITTED", "WHY", spared=("RESOURCES", "PRICE"))
    for run in rows:
        jobs = run.last_attempt
        only = jobs[0] if len(jobs) == run.replicas * run.nodes == 1 else None
        made.add(
            run.name,
            _where(only) if only else "",
            (only.resources or "") if only else "",
            _price(jobs),
            status_text(run.status, pulling(only) if only else ""),
            ago(run.submitted_at),
            why(run),
        )
        if only is None:
            for job in jobs:
                made.add(*_job_cells(job))
    return made.table


def why(run: RunRow) -> str:
    """Why it waits, or how it ended; of a good end there is nothing to say."""
    if run.status in (RunStatus.DONE, RunStatus.RUNNING):
        return ""
    return run.message or (run.reason or "").replace("_", " ")


def job_words(job: JobRow) -> str:
    """Why a job ended; of a good end there is nothing to say."""
    if job.reason is None or job.status == JobStatus.DONE:
        return job.message
    try:
        return end_words(JobReason(job.reason), job.exit_status, job.message)
    except ValueError:
        return job.reason.replace("_", " ")


def pulling(job: JobRow) -> str:
    if job.status != JobStatus.PULLING or job.pull is None:
        return ""
    done, total = job.pull
    return f"{size(done)} of {size(total)}" if total else size(done)


def _job_cells(job: JobRow) -> tuple[str | Text, ...]:
    name = f"  job {job.node}" if job.replica == 0 else f"  replica {job.replica} job {job.node}"
    if job.submission:
        name += f" attempt {job.submission}"
    return (
        Text(name, style="dim"),
        _where(job),
        job.resources or "",
        price(job.price) if job.price is not None else "",
        status_text(job.status, pulling(job)),
        ago(job.submitted_at) if job.submitted_at else "",
        job_words(job),
    )


def _where(job: JobRow) -> str:
    """``local-0``, ``aws pool-3``: the machine, and whose it is unless its name says so."""
    backend, instance = job.backend or "", job.instance or ""
    return instance if instance.startswith(f"{backend}-") else f"{backend} {instance}".strip()


def _price(jobs: Sequence[JobRow]) -> str:
    prices = [job.price for job in jobs if job.price is not None and not JobStatus(job.status).final]
    return price(sum(prices)) if prices else ""


def offer_table(offers: Sequence[PlannedOffer]) -> Table:
    made = Rows("#", "FLEET", "BACKEND", "RESOURCES", "INSTANCE TYPE", "SPOT", "PRICE", "", spared=("SPOT",))
    for number, planned in enumerate(offers, start=1):
        offer = planned.offer
        made.add(
            str(number),
            planned.fleet,
            f"{offer.backend} ({offer.region})" if offer.region not in ("", offer.backend) else offer.backend,
            offer.resources.words(),
            planned.instance or offer.instance_type,
            "yes" if offer.spot else "no",
            price(offer.price),
            status_text(planned.availability.replace("_", " ")),
        )
    return made.table


def failure_table(failures: Sequence[OfferFailure]) -> Table:
    made = Rows("OFFER", "WHY NOT")
    for failure in failures:
        made.add(failure.offer, failure.why)
    return made.table


def fleet_table(rows: Sequence[FleetRow]) -> Table:
    made = Rows(
        "NAME", "NODES", "WHERE", "RESOURCES", "PRICE", "STATUS", "CREATED", "WHY", spared=("RESOURCES", "PRICE")
    )
    for fleet in rows:
        nodes = fleet.nodes + (" (cluster)" if fleet.placement == "cluster" else "")
        made.add(fleet.name, nodes, "", "", "", status_text(fleet.status), ago(fleet.created_at), "")
        for instance in fleet.instances:
            made.add(*_instance_cells(instance))
    return made.table


def _instance_cells(instance: InstanceRow) -> tuple[str | Text, ...]:
    blocks = f"{instance.busy_blocks}/{instance.total_blocks}" if instance.total_blocks > 1 else ""
    reason = (instance.reason or "").replace("_", " ")
    return (
        Text(f"  {instance.num}: {instance.name}", style="dim"),
        "",
        " ".join(dict.fromkeys(part for part in (instance.backend, instance.region, instance.address) if part)),
        instance.resources,
        price(instance.price),
        status_text(instance.status, blocks),
        ago(instance.created_at),
        instance.message or reason,
    )


def lasted(run: RunRow) -> str:
    """How long a run took, from submission to its end."""
    if run.ended_at is None:
        return ""
    return duration((run.ended_at - run.submitted_at).total_seconds())
