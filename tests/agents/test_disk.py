"""State on disk: whole or not at all, and not in the way of a stop when the disk is full."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from pydantic import BaseModel

from perdure.agents import disk
from tests.agents.processes import eventually


class Note(BaseModel):
    text: str


def test_a_record_is_read_as_it_was_written_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "note.json"
    assert disk.read(path, Note) is None
    for text in ("one", "two"):
        disk.write(path, Note(text=text), durable=True)
        assert disk.read(path, Note) == Note(text=text)
    assert [file.name for file in tmp_path.iterdir()] == ["note.json"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_lock_is_held_by_who_has_the_file_open(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not disk.held(path)
    lock = disk.Lock.take(path)
    assert lock is not None
    assert disk.Lock.take(path) is None
    assert disk.held(path)
    lock.close()
    assert not disk.held(path)


async def test_a_full_disk_refuses_a_beginning_and_delays_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "note.json"
    record = disk.Record(path)
    record.write(Note(text="begun"))
    monkeypatch.setattr(disk, "_TRY_AGAIN", 0.01)
    with monkeypatch.context() as full:

        def refuse(*_: object, **__: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        full.setattr(disk, "write_bytes", refuse)
        with pytest.raises(OSError, match="No space"):
            record.write(Note(text="more"))
        record.write(Note(text="stopping"), must=False)
        record.write(Note(text="stopped"), must=False)
        assert disk.read(path, Note) == Note(text="begun")
    await eventually(lambda: disk.read(path, Note) == Note(text="stopped"))
