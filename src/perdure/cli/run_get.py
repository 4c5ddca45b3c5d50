"""``perdure run get``."""

from __future__ import annotations

from uuid import UUID

import yaml

from perdure.cli.session import with_client
from perdure.cli.tables import failure_table, job_words, run_table, status_text
from perdure.cli.terminal import out, print_json
from perdure.cli.waiting import urls
from perdure.client.client import PerdureClient
from perdure.model.api import RunRow
from perdure.model.errors import UserError


def show(project: str, name: str | None, run_id: str | None, *, json: bool) -> None:
    try:
        wanted = UUID(run_id) if run_id else None
    except ValueError:
        raise UserError(f"{run_id!r} is not a UUID", hint="`perdure ps -a --json` shows the ids of runs") from None

    async def work(client: PerdureClient) -> None:
        run = await client.get_run(project, name, wanted)
        if json:
            print_json(run)
            return
        out().print(run_table([run]))
        if run.failures:
            out().print(failure_table(run.failures))
        for job in run.jobs if _tells_more(run) else ():
            out().print(f"  job {job.node} of replica {job.replica}, attempt {job.submission}:", end=" ")
            out().print(status_text(job.status, job_words(job)))
        for port, url in urls(run):
            out().print(f"  port {port}: {url}", markup=False)
        if run.configuration:
            out().print(yaml.safe_dump(run.configuration, sort_keys=False, allow_unicode=True), markup=False)

    with_client(work)


def _tells_more(run: RunRow) -> bool:
    """There are submissions besides the latest of each job, which the table shows."""
    return len(run.jobs) > len(run.last_attempt)
