"""Code on its way into the blob store."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from perdure.blobs.folder import FolderBlobs
from perdure.client.code.archive import PackedCode
from perdure.client.places import blobs_folder
from perdure.model.api import Hello
from perdure.model.errors import UserError


async def upload(archive: PackedCode, hello: Hello, progress: Callable[[int], None] = lambda _: None) -> bool:
    """Store an archive under its hash. False: it was there already.

    Raises:
        UserError: the blob store cannot be reached from here.
    """
    folder = blobs_folder(hello)
    if folder is None:
        raise UserError(
            f"code cannot be uploaded from this machine: the installation keeps it in the folder {hello.blobs}"
            " of its own host, which is not here",
            hint="run perdure on that host, or share the folder at the same path",
        )
    store = FolderBlobs(folder)
    if await store.has_code(archive.ref.sha256):
        progress(archive.ref.size)
        return False

    async def pieces() -> AsyncIterator[bytes]:
        for piece in archive.pieces():
            yield piece
            progress(len(piece))

    try:
        await store.write_code(archive.ref.sha256, pieces())
    except OSError as error:
        raise UserError(f"the code cannot be stored in {folder}: {error.strerror}") from error
    return True
