"""A worker that dies at named points, each once: from within (``deadly/sitecustomize.py``)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

DEADLY = Path(__file__).parent / "deadly"


class Deaths:
    """What the worker is to die of, one line a point, in a file that it takes each from before it dies."""

    def __init__(self, folder: Path):
        self._file = folder / "points"

    @property
    def environ(self) -> dict[str, str]:
        """For the stack whose worker it is."""
        return {"PERDURE_DIE_FILE": str(self._file), "PYTHONPATH": str(DEADLY)}

    def at(self, points: Iterable[str]) -> None:
        """Die at ``ACTIVITY:before`` or ``ACTIVITY:after``, with ``:SIGNAL`` behind it if it is not KILL."""
        beside = self._file.with_name("next")
        beside.write_text("\n".join(points))
        beside.rename(self._file)

    @property
    def left(self) -> list[str]:
        """Points that it has not come by."""
        return self._file.read_text().split()
