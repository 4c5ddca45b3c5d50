"""Development environments."""

from __future__ import annotations

import re
from typing import Literal, Self

from pydantic import model_validator

from perdure.spec.grammar.base import Text, wrong
from perdure.spec.grammar.durations import OffableDuration
from perdure.spec.grammar.ports import Port
from perdure.spec.models.run import Commands, RunFields

_WINDSURF = re.compile(r"[^@\s]+@[0-9a-f]+")


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

    @model_validator(mode="after")
    def _fitting(self) -> Self:
        if self.version is not None and self.ide is None:
            raise wrong("has a version without an ide")
        if self.ide == "windsurf" and self.version is not None and not _WINDSURF.fullmatch(self.version):
            raise wrong("has a version that windsurf does not have", "write version@commit: 1.106.0@8951cd3a")
        if self.dstack and isinstance(self.inactivity_duration, int):
            raise wrong("has both dstack: true and inactivity_duration")
        return self
