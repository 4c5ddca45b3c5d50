"""Code arrives as it was: every byte, bit, link and name; the same files always make the same archive."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import tempfile
from pathlib import Path, PurePosixPath
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perdure.agents.archives import unpack
from perdure.blobs.folder import FolderBlobs
from perdure.client.code import Part, check_limit, find, pack, upload
from perdure.client.code import archive as archive_module
from perdure.model.api import Hello
from perdure.model.errors import CodeTooLarge, InvalidConfiguration, UserError
from perdure.spec.grammar.mounts import FileMapping, RepoSpec

name_bytes = st.binary(min_size=1, max_size=12).filter(
    lambda name: not set(name) & {0, ord("/")} and name not in (b".", b"..", b".git", b".gitignore")
)


@given(
    files=st.dictionaries(name_bytes, st.tuples(st.binary(max_size=5000), st.booleans()), max_size=6),
    folders=st.lists(name_bytes, max_size=3),
)
@settings(max_examples=60, deadline=None)
def test_what_is_unpacked_is_what_was_packed(files: dict[bytes, tuple[bytes, bool]], folders: list[bytes]):
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        root = Path(one)
        for name, (data, executable) in files.items():
            path = root / os.fsdecode(name)
            path.write_bytes(data)
            path.chmod(0o750 if executable else 0o640)
        for name in folders:
            (root / "in-it" / os.fsdecode(name)).mkdir(parents=True, exist_ok=True)
        _round_trip(Path(one), Path(other))
        assert _tree(Path(one)) == _tree(Path(other))


def test_odd_files_survive(tmp_path: Path):
    root = tmp_path / "root"
    for name in ("new\nline", "tab\there", "-dash", "é", " space ", "a" * 255, "deep/" * 60 + "file", "*"):
        _write(root / name, name.encode())
    _write(root / os.fsdecode(b"not-utf8-\xff"), b"\0\xff")
    _write(root / "empty", b"")
    (root / "empty-folder").mkdir()
    (root / "link").symlink_to("empty")
    (root / "deep/up").symlink_to("../empty")
    (root / "dangling").symlink_to("nothing-here")
    (root / "to-folder").symlink_to("deep")
    (root / "absolute").symlink_to(root / "deep/up")
    _round_trip(root, tmp_path / "out")
    (root / "absolute").unlink()
    (root / "absolute").symlink_to("deep/up")
    assert _tree(root) == _tree(tmp_path / "out")


def test_the_same_files_make_the_same_archive(tmp_path: Path):
    hashes: set[str] = set()
    for order in (("a", "b/c", "b.d"), ("b.d", "b/c", "a")):
        root = tmp_path / "-".join(order).replace("/", "_")
        for name in order:
            _write(root / name, name.encode())
            os.utime(root / name, (len(hashes) * 1000.0, len(hashes) * 1000.0))
        with pack(_part(root)) as packed:
            hashes.add(packed.ref.sha256)
            data = b"".join(packed.pieces())
            assert hashlib.sha256(data).hexdigest() == packed.ref.sha256
            assert len(data) == packed.ref.size
    assert len(hashes) == 1


def test_nothing_of_this_machine_is_in_the_archive(tmp_path: Path):
    _write(tmp_path / "root/a", b"x")
    with pack(_part(tmp_path / "root")) as packed:
        data = io.BytesIO(b"".join(packed.pieces()))
    with tarfile.open(fileobj=data) as tar:
        (member,) = tar.getmembers()
    assert (member.uid, member.gid, member.uname, member.gname) == (0, 0, "", "")
    assert member.mtime == archive_module.MTIME


def test_a_link_that_leads_outside_brings_what_it_leads_to(tmp_path: Path):
    _write(tmp_path / "outside/data", b"data")
    _write(tmp_path / "outside/folder/x", b"x")
    (tmp_path / "outside/folder/y").symlink_to("../data")
    root = tmp_path / "root"
    root.mkdir()
    (root / "file").symlink_to(tmp_path / "outside/data")
    (root / "folder").symlink_to("../outside/folder")
    _round_trip(root, tmp_path / "out")
    assert _tree(tmp_path / "out") == {
        "file": (b"data", False),
        "folder/x": (b"x", False),
        "folder/y": (b"data", False),
    }


def test_a_link_that_leads_to_nothing_outside_is_refused(tmp_path: Path):
    (tmp_path / "root").mkdir()
    (tmp_path / "root/link").symlink_to(tmp_path / "gone")
    with pytest.raises(UserError, match=r"link is a link to .*gone, outside of the folder, which is not there"):
        _part(tmp_path / "root")


@pytest.mark.parametrize("target", ["..", "../../root", "../other"])
def test_a_loop_of_links_is_refused(tmp_path: Path, target: str):
    (tmp_path / "root").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other/back").symlink_to(tmp_path / "other")
    (tmp_path / "root/again").symlink_to(target)
    if target == "../../root":
        (tmp_path / "root/again").unlink()
        (tmp_path / "root/again").symlink_to(tmp_path)
    with pytest.raises(UserError, match="a loop"):
        _part(tmp_path / "root")


def test_sockets_and_pipes_are_left_out_and_never_opened(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    _write(tmp_path / "kept", b"x")
    part = _part(tmp_path)
    assert [entry.name for entry in part.found.entries] == ["kept"]
    assert part.found.left_out == ["pipe (not a file)"]


def test_a_file_that_goes_away_meanwhile_is_told_in_one_sentence(tmp_path: Path):
    _write(tmp_path / "a", b"x")
    part = _part(tmp_path)
    (tmp_path / "a").unlink()
    with pytest.raises(UserError, match="a went away while it was packed"), pack(part):
        pass


def test_a_file_that_becomes_a_pipe_meanwhile_does_not_hang(tmp_path: Path):
    _write(tmp_path / "a", b"x")
    part = _part(tmp_path)
    (tmp_path / "a").unlink()
    os.mkfifo(tmp_path / "a")
    with pytest.raises(UserError, match="a changed while it was packed"), pack(part):
        pass


def test_an_unreadable_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    _write(tmp_path / "secret", b"x")
    part = _part(tmp_path)

    def refused(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(archive_module.os, "open", refused)
    with pytest.raises(UserError, match="secret cannot be read: Permission denied") as caught, pack(part):
        pass
    assert caught.value.hint and ".perdureignore" in caught.value.hint


def test_code_over_the_limit_names_the_biggest_paths(tmp_path: Path):
    for number in range(12):
        _write(tmp_path / f"file-{number}", b"x" * 1000 * (number + 1))
    with pytest.raises(CodeTooLarge) as caught:
        check_limit([_part(tmp_path)], 10_000)
    assert caught.value.hint is not None
    named = [line.split()[-1] for line in caught.value.hint.splitlines()[1:]]
    assert named == [f"file-{number}" for number in range(11, 1, -1)]


def test_many_small_files_over_the_limit_are_named_by_folder(tmp_path: Path):
    for number in range(200):
        _write(tmp_path / f"modules/deep/{number}/x", b"x" * 1000)
    with pytest.raises(CodeTooLarge) as caught:
        check_limit([_part(tmp_path)], 10_000)
    assert caught.value.hint and "modules/deep/" in caught.value.hint


def test_no_limit_when_it_is_zero(tmp_path: Path):
    _write(tmp_path / "a", b"x" * 1000)
    check_limit([_part(tmp_path)], 0)


@pytest.mark.parametrize(
    ("local", "path", "expected_path", "expected_names"),
    [
        ("src", "src", "src", {"a.py"}),
        ("./src/", "/app", "/app", {"a.py"}),
        ("src/a.py", "src/a.py", "src", {"a.py"}),
        ("src/a.py", "b.py", ".", {"b.py"}),
        ("src/a.py", "/etc/conf/", "/etc/conf", {"a.py"}),
        ("src/a.py", "~/b.py", "~", {"b.py"}),
        ("src/a.py", ".", ".", {"a.py"}),
    ],
)
def test_files_go_where_the_configuration_says(
    tmp_path: Path, local: str, path: str, expected_path: str, expected_names: set[str]
):
    _write(tmp_path / "src/a.py", b"x")
    (part,) = find([FileMapping(local_path=local, path=path)], [], tmp_path)
    assert part.path == expected_path
    assert {entry.name for entry in part.found.entries} == expected_names


def test_every_path_that_is_not_there_is_told_with_its_place(tmp_path: Path):
    with pytest.raises(InvalidConfiguration) as caught:
        find(
            [FileMapping(local_path="gone", path="gone"), FileMapping(local_path=".", path=".")],
            [RepoSpec(local_path="nowhere"), RepoSpec(url="https://example.com/a/b")],
            tmp_path,
        )
    assert [error.path for error in caught.value.errors] == ["repos[0]", "repos[1]", "files[0]"]


def test_a_folder_without_git_is_no_repository(tmp_path: Path):
    with pytest.raises(UserError, match="not a git repository") as caught:
        find([], [RepoSpec(local_path=".")], tmp_path)
    assert caught.value.hint and "files:" in caught.value.hint


async def test_code_is_stored_once(tmp_path: Path):
    installation = uuid4()
    _write(tmp_path / "root/a", b"x")
    store = FolderBlobs(tmp_path / "blobs", installation)
    hello = Hello(version="1", installation=installation, public_key="", blobs=store.url, code_limit=0)
    with pack(_part(tmp_path / "root")) as packed:
        assert await upload(packed, hello)
        assert not await upload(packed, hello)
        stored = b"".join([piece async for piece in store.read_code(packed.ref.sha256)])
        assert stored == b"".join(packed.pieces())


async def test_another_hosts_blob_store_is_refused(tmp_path: Path):
    _write(tmp_path / "root/a", b"x")
    store = FolderBlobs(tmp_path / "blobs", uuid4())
    hello = Hello(version="1", installation=uuid4(), public_key="", blobs=store.url, code_limit=0)
    with pack(_part(tmp_path / "root")) as packed, pytest.raises(UserError, match="cannot be uploaded"):
        await upload(packed, hello)


def _part(root: Path) -> Part:
    (part,) = find([FileMapping(local_path=str(root), path=".")], [], Path("/"))
    return part


def _round_trip(root: Path, out: Path) -> None:
    out.mkdir(exist_ok=True)
    with pack(_part(root)) as packed, tempfile.NamedTemporaryFile() as file:
        for piece in packed.pieces():
            file.write(piece)
        file.flush()
        unpack(Path(file.name), out, PurePosixPath("."))


def _tree(root: Path) -> dict[str, object]:
    """Every file (bytes, exec bit), link (target) and empty folder."""
    tree: dict[str, object] = {}
    for folder, folders, files in os.walk(root):
        here = Path(folder)
        if here != root and not folders and not files:
            tree[str(here.relative_to(root))] = "folder"
        for name in [*files, *folders]:
            path = here / name
            if path.is_symlink():
                tree[str(path.relative_to(root))] = f"-> {path.readlink()}"
            elif path.is_file():
                tree[str(path.relative_to(root))] = (path.read_bytes(), bool(path.stat().st_mode & 0o100))
    return tree


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
