"""The folder store: whole archives only, and bytes at their offsets."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from perdure.blobs.folder import FolderBlobs
from perdure.model.errors import NotFound, UserError
from perdure.model.ids import log_key

ARCHIVE = bytes(range(256)) * 12_000
SHA256 = hashlib.sha256(ARCHIVE).hexdigest()


@pytest.fixture
def blobs(tmp_path: Path) -> FolderBlobs:
    return FolderBlobs(tmp_path / "blobs", uuid4())


async def pieces(data: bytes, size: int = 100_000) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        await asyncio.sleep(0)
        yield data[start : start + size]


async def broken(data: bytes) -> AsyncIterator[bytes]:
    yield data
    raise ConnectionResetError


async def test_an_archive_comes_back_in_pieces_as_it_was_stored(blobs: FolderBlobs) -> None:
    assert not await blobs.has_code(SHA256)
    await blobs.write_code(SHA256, pieces(ARCHIVE))
    assert await blobs.has_code(SHA256)
    read = [piece async for piece in blobs.read_code(SHA256)]
    assert b"".join(read) == ARCHIVE
    assert max(map(len, read)) <= 1024**2


async def test_a_wrong_hash_stores_nothing(blobs: FolderBlobs) -> None:
    with pytest.raises(UserError, match="not the code that was announced"):
        await blobs.write_code(SHA256, pieces(ARCHIVE[:-1]))
    assert not await blobs.has_code(SHA256)
    assert list((Path(blobs.url) / "code").iterdir()) == []


async def test_an_upload_that_breaks_off_stores_nothing(blobs: FolderBlobs) -> None:
    with pytest.raises(ConnectionResetError):
        await blobs.write_code(SHA256, broken(ARCHIVE[:100]))
    assert list((Path(blobs.url) / "code").iterdir()) == []


async def test_many_who_store_the_same_archive_at_once_store_it_once(blobs: FolderBlobs) -> None:
    await asyncio.gather(
        *(blobs.write_code(SHA256, pieces(ARCHIVE, size)) for size in range(1_000, 90_000, 10_000))
    )
    assert b"".join([piece async for piece in blobs.read_code(SHA256)]) == ARCHIVE
    assert [path.name for path in (Path(blobs.url) / "code").iterdir()] == [SHA256]


async def test_an_archive_that_is_stored_is_not_written_again(blobs: FolderBlobs) -> None:
    await blobs.write_code(SHA256, pieces(ARCHIVE))
    await blobs.write_code(SHA256, broken(b"never looked at"))
    assert b"".join([piece async for piece in blobs.read_code(SHA256)]) == ARCHIVE


async def test_code_that_is_not_there_is_not_found(blobs: FolderBlobs) -> None:
    with pytest.raises(NotFound):
        _ = [piece async for piece in blobs.read_code(SHA256)]


@pytest.mark.parametrize("name", ["", "../../etc/passwd", SHA256.upper(), SHA256 + "/x", "0" * 63])
async def test_what_is_no_hash_names_no_file(blobs: FolderBlobs, name: str) -> None:
    with pytest.raises(UserError):
        await blobs.has_code(name)


async def test_a_log_is_its_bytes_at_their_offsets_however_often_they_are_written(blobs: FolderBlobs) -> None:
    key = log_key(uuid4())
    await blobs.write_log(key, 0, b"one\n")
    await blobs.write_log(key, 4, b"two\n")
    await blobs.write_log(key, 0, b"one\n")
    assert await blobs.read_log(key, 0, 100) == b"one\ntwo\n"
    assert await blobs.read_log(key, 4, 2) == b"tw"
    assert await blobs.read_log(key, 8, 100) == b""


async def test_a_log_nobody_wrote_is_empty(blobs: FolderBlobs) -> None:
    assert await blobs.read_log(log_key(uuid4()), 0, 100) == b""


@pytest.mark.parametrize("key", ["logs/../../x", "/etc/passwd", "logs/", "logs/a/b", "other/a", ""])
async def test_no_key_leads_out_of_the_folder(blobs: FolderBlobs, key: str) -> None:
    with pytest.raises(UserError):
        await blobs.write_log(key, 0, b"x")


async def test_deleting_forgets_and_may_be_repeated(blobs: FolderBlobs) -> None:
    key = log_key(uuid4())
    await blobs.write_log(key, 0, b"x")
    await blobs.delete([key])
    await blobs.delete([key])
    assert await blobs.read_log(key, 0, 100) == b""


async def test_the_folder_says_whose_it_is_and_is_closed_to_others(tmp_path: Path) -> None:
    installation = uuid4()
    FolderBlobs(tmp_path / "blobs", installation)
    assert (tmp_path / "blobs" / "installation").read_text().strip() == str(installation)
    assert (tmp_path / "blobs").stat().st_mode & 0o077 == 0
