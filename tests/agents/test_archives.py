"""Archives are unpacked as they were packed, and never outside of their folder."""

from __future__ import annotations

import io
import os
import stat
import tarfile
from pathlib import Path, PurePosixPath

import pytest

from perdure.agents.archives import UnsafeArchive, unpack

HERE = PurePosixPath()


def _tar(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w") as tar:
        for member, content in members:
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


def _member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.mode = kind, link, mode
    return member


def test_everything_is_as_it_was_packed(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep" / "er").mkdir(parents=True)
    (source / "empty").mkdir()
    (source / "nothing").touch()
    (source / "binary").write_bytes(bytes(range(256)) * 100)
    (source / "run.sh").write_text("#!/bin/sh\n")
    (source / "run.sh").chmod(0o755)
    (source / "secret").write_text("x")
    (source / "secret").chmod(0o600)
    (source / "deep" / "er" / "ünï \n 'odd\" -rf").write_text("odd")
    (source / os.fsdecode(b"not-utf8-\xff")).write_text("bytes")
    (source / "link").symlink_to("deep/er")
    (source / "dangling").symlink_to("/no/such/file")
    os.link(source / "binary", source / "same")
    (source / "run.sh").touch()
    os.utime(source / "run.sh", (1_000_000_000, 1_000_000_000))
    archive = tmp_path / "a.tar"
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(source, ".")
    target = tmp_path / "target"
    target.mkdir()
    unpack(archive, target, PurePosixPath("some/where"))
    assert _described(target / "some" / "where") == _described(source)
    unpack(archive, target, PurePosixPath("some/where"))
    assert _described(target / "some" / "where") == _described(source), "again is the same"


def _described(root: Path) -> dict[str, object]:
    described: dict[str, object] = {}
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.is_symlink():
            described[name] = ("link", os.readlink(path))  # noqa: PTH115
        elif path.is_dir():
            described[name] = ("folder", stat.S_IMODE(path.stat().st_mode))
        else:
            status = path.stat()
            described[name] = ("file", stat.S_IMODE(status.st_mode), int(status.st_mtime), path.read_bytes())
    return described


@pytest.mark.parametrize(
    "members",
    [
        [(_member("../escape"), b"x")],
        [(_member("/absolute"), b"x")],
        [(_member("a/../../escape"), b"x")],
        [(_member("out", tarfile.SYMTYPE, ".."), b""), (_member("out/escape"), b"x")],
        [(_member("out", tarfile.SYMTYPE, "/tmp"), b""), (_member("out/escape"), b"x")],
        [(_member("out", tarfile.SYMTYPE, ".."), b""), (_member("out/", tarfile.DIRTYPE), b"")],
        [
            (_member("a", tarfile.SYMTYPE, "b"), b""),
            (_member("b", tarfile.SYMTYPE, ".."), b""),
            (_member("a/c"), b""),
        ],
        [(_member("hard", tarfile.LNKTYPE, "../secret"), b"")],
        [(_member("hard", tarfile.LNKTYPE, "/etc/passwd"), b"")],
        [(_member("out", tarfile.SYMTYPE, ".."), b""), (_member("hard", tarfile.LNKTYPE, "out/secret"), b"")],
        [(_member("fifo", tarfile.FIFOTYPE), b"")],
        [(_member("device", tarfile.CHRTYPE), b"")],
        [(_member("folder", tarfile.DIRTYPE), b""), (_member("folder"), b"x")],
        [(_member("."), b"x")],
    ],
)
def test_what_leads_out_is_refused_and_nothing_is_written_outside(
    tmp_path: Path, members: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    (tmp_path / "secret").write_text("secret")
    target = tmp_path / "target"
    target.mkdir()
    archive = _tar(tmp_path / "a.tar", *members)
    with pytest.raises(UnsafeArchive):
        unpack(archive, target, HERE)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar", "secret", "target"]
    assert (tmp_path / "secret").read_text() == "secret"


def test_a_file_through_a_link_replaces_the_link_and_not_its_target(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    target = tmp_path / "target"
    target.mkdir()
    archive = _tar(
        tmp_path / "a.tar",
        (_member("file", tarfile.SYMTYPE, "../secret"), b""),
        (_member("file"), b"new"),
    )
    unpack(archive, target, HERE)
    assert (tmp_path / "secret").read_text() == "secret"
    assert (target / "file").read_text() == "new"
    assert not (target / "file").is_symlink()


def test_a_link_that_an_earlier_job_left_is_not_followed(tmp_path: Path) -> None:
    target, elsewhere = tmp_path / "target", tmp_path / "elsewhere"
    target.mkdir()
    elsewhere.mkdir()
    (target / "code").symlink_to(elsewhere)
    archive = _tar(tmp_path / "a.tar", (_member("file"), b"x"))
    with pytest.raises(UnsafeArchive):
        unpack(archive, target, PurePosixPath("code/below"))
    assert list(elsewhere.iterdir()) == []


def test_set_id_bits_and_owners_are_not_taken_over(tmp_path: Path) -> None:
    member = _member("file", mode=0o6755)
    member.uid = member.gid = 12345
    unpack(_tar(tmp_path / "a.tar", (member, b"x")), tmp_path, HERE)
    status = (tmp_path / "file").stat()
    assert stat.S_IMODE(status.st_mode) == 0o755
    assert status.st_uid == os.getuid()


def test_what_is_no_archive_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(b"no tar" * 1000)
    with pytest.raises(UnsafeArchive, match="not a readable tar"):
        unpack(tmp_path / "a.tar", tmp_path, HERE)


def test_a_truncated_archive_is_told(tmp_path: Path) -> None:
    archive = _tar(tmp_path / "a.tar", (_member("file"), b"x" * 100_000))
    archive.write_bytes(archive.read_bytes()[:50_000])
    with pytest.raises(UnsafeArchive):
        unpack(archive, tmp_path, HERE)
