"""``perdure-runner``: one process a task, beside the job. Owns the job from its submit to the acknowledged end."""

from __future__ import annotations


def main() -> None:
    """``perdure-runner --folder FOLDER``: serve the task in FOLDER until killed."""
    from perdure.agents.runner.process import main as run

    run()
