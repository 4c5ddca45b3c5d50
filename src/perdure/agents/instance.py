"""What a shim and its runners know of their instance: ``instance.json``, written before the shim starts."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from pydantic import BaseModel, ConfigDict


class Instance(BaseModel):
    """``work_dir`` holds the jobs' own files; ``home`` and the shim's folder are hidden from them."""

    model_config = ConfigDict(extra="ignore")

    instance_id: UUID
    token: str
    address: str = "127.0.0.1"
    name: str = ""
    installation: UUID | None = None
    epoch: int = 0
    work_dir: Path
    home: Path | None = None

    @classmethod
    def load(cls, folder: Path) -> Instance:
        """That of the shim whose folder this is."""
        return cls.model_validate_json((folder / "instance.json").read_bytes())

    def hidden(self, folder: Path) -> list[Path]:
        """What no job may see: ``home`` (by default the parent of the shim's folder) and the shim's folder."""
        folder = folder.resolve()  # it may be reached through a link, for a path that sockets can have
        home = self.home.resolve() if self.home else folder.parent
        return [home] if folder.is_relative_to(home) else [home, folder]
