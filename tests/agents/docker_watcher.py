"""A runner's half of a container task in a process of its own, for tests that kill it: starts, waits, says."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from uuid import uuid4

from perdure.agents.docker import DockerExecution
from perdure.agents.instance import Instance
from perdure.agents.protocol import SubmitBody, TaskConfig


async def main(folder: Path, address: str) -> None:
    task = TaskConfig.model_validate_json((folder / "config.json").read_text())
    job = SubmitBody.model_validate_json((folder / "job.json").read_text())
    instance = Instance(instance_id=uuid4(), token="t", work_dir=folder)
    execution = DockerExecution(task, folder, instance, address)
    await execution.start(job)
    end = await execution.wait()
    result = folder / "result.tmp"
    result.write_text(f"{end.exit_status} {end.message}")
    result.rename(folder / "result.json")


asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
