"""``perdure-shim``: owns the tasks of one instance. Survives nothing, loses nothing: its state is on disk."""

from __future__ import annotations


def main() -> None:
    """``perdure-shim --folder DIR``: serve the instance that DIR/instance.json describes, until killed."""
    from perdure.agents.shim.process import main as run

    run()
