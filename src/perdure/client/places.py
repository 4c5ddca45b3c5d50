"""Whether the blob store can be reached from here directly."""

from __future__ import annotations

from pathlib import Path

from perdure.model.api import Hello


def blobs_folder(hello: Hello) -> Path | None:
    """The blob store's folder, if it is on this host and this user may use it: a file ``installation`` in it says
    that it is the one the worker means."""
    folder = Path(hello.blobs.removeprefix("file://"))
    try:
        same = folder.is_absolute() and (folder / "installation").read_text().strip() == str(hello.installation)
    except (OSError, ValueError):
        return None
    return folder if same else None
