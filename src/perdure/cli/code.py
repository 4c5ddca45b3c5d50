"""Code as the plan announces it, and the progress bar while it goes up."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from perdure import spec
from perdure.cli.terminal import say
from perdure.cli.words import size
from perdure.client.client import PerdureClient
from perdure.client.code import Part, find, pack, upload
from perdure.client.code.entries import shown
from perdure.model.messages import CodeRef

NAMED_LEFT_OUT = 5


def look(configuration: Mapping[str, Any], folder: Path) -> list[Part]:
    """What the configuration takes along from this machine."""
    run = spec.parse_run(configuration)
    return find(run.files, run.repos, folder)


def announce(parts: list[Part]) -> list[tuple[str, str]]:
    """Lines of the plan: how many files and bytes go, and what was left out."""
    lines: list[tuple[str, str]] = []
    for part in parts:
        found = part.found
        plural = "" if found.files == 1 else "s"
        text = f"{shown(part.local)}: {found.files} file{plural}, {size(found.size)}, to {part.path}"
        if found.left_out_count:
            named = ", ".join(shown(name) for name in found.left_out[:NAMED_LEFT_OUT])
            more = found.left_out_count - min(len(found.left_out), NAMED_LEFT_OUT)
            text += f"; left out: {named}" + (f" and {more} more" if more else "")
        lines.append(("Repo" if part.kind == "repo" else "Files", text))
    return lines


async def send(parts: list[Part], client: PerdureClient) -> tuple[CodeRef, ...]:
    """Pack and upload everything."""
    refs: list[CodeRef] = []
    hello = await client.hello()
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(30),
        DownloadColumn(),
        console=say(),
        transient=True,
        disable=not parts or not say().is_terminal,
    )
    with bar:
        for part in parts:
            task = bar.add_task(f"packing {shown(part.local)}", total=part.found.size)
            packing = pack(part, lambda done, task=task: bar.advance(task, done))
            archive = await asyncio.to_thread(packing.__enter__)
            bar.reset(task, total=archive.ref.size, description=f"uploading {shown(part.local)}")
            try:
                await upload(archive, hello, lambda done, task=task: bar.advance(task, done))
            finally:
                packing.__exit__(None, None, None)
            refs.append(archive.ref)
    return tuple(refs)
