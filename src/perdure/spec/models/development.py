"""Development environments."""

from __future__ import annotations

from typing import Literal

from perdure.spec.grammar.base import Text
from perdure.spec.grammar.durations import OffableDuration
from perdure.spec.grammar.ports import Port
from perdure.spec.models.run import Commands, RunFields


class DevEnvironment(RunFields):
    """A machine to work on, with an IDE."""

    type: Literal["dev-environment"]
    """What it is."""

    ide: Literal["vscode", "cursor", "windsurf", "zed"] | None = None
    """What it is opened in. Unset: SSH only."""

    version: Text | None = None
    """Of the IDE's server part, such as ``1.106.0``. Unset: as on your machine."""

    init: Commands = ()
    """Commands that run first, such as ``[pip install -r requirements.txt]``."""

    inactivity_duration: OffableDuration = None
    """Ended when nobody has been connected for as long; ``off`` if unset."""

    ports: tuple[Port, ...] = ()
    """Ports of the job that you reach from your machine."""
