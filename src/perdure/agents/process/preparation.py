"""The shim's half of a process job: nothing to fetch, everything to tidy up."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

from perdure.agents.instance import Instance
from perdure.agents.process import tree
from perdure.agents.process.files import ProcessFiles
from perdure.agents.protocol import PortMapping, PullProgress, TaskConfig


class ProcessPreparation:
    def __init__(self, instance: Instance, shim_folder: Path):
        self._instance = instance
        self._shim_folder = shim_folder

    async def prepare(
        self, task: TaskConfig, folder: Path, progress: Callable[[PullProgress], None]
    ) -> list[PortMapping]:
        """The network is the host's: every port is its own."""
        self._instance.work_dir.mkdir(parents=True, exist_ok=True)
        return [PortMapping(host=port, container=port) for port in task.ports]

    async def has_result(self, task: TaskConfig, folder: Path) -> bool:
        """The keeper wrote it, with all its output before it."""
        return (folder / "exit.json").exists()

    async def remove(self, task: TaskConfig, folder: Path) -> None:
        """Kill what is left and delete the job's own folder."""
        files = ProcessFiles.of(folder, self._instance.work_dir, task.id)
        await tree.kill(files, task.id)
        await asyncio.to_thread(_delete, files.own)


def _delete(folder: Path) -> None:
    if folder.exists():
        shutil.rmtree(folder)
