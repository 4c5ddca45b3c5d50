"""Code in a container: as packed, owned by the job's user, at the path it names."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from typing import Any

import pytest

from perdure.agents.execution import ExecutionError, Exit
from perdure.agents.protocol import Archive
from tests.agents.docker_tasks import Task, Tasks

BINARY = os.urandom(300_000)


def archive(*members: tuple[str, Any], compressed: bool = False) -> bytes:
    """A tar: bytes are files, None is a folder, a text is a symlink; a name that ends in ``*`` is executable."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz" if compressed else "w") as tar:
        for name, content in members:
            member = tarfile.TarInfo(name.removesuffix("*"))
            member.mode = 0o755 if name.endswith("*") or content is None else 0o644
            if content is None:
                member.type = tarfile.DIRTYPE
            elif isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
            else:
                member.size = len(content)
            tar.addfile(member, io.BytesIO(content) if isinstance(content, bytes) else None)
    return buffer.getvalue()


def with_code(tasks: Tasks, script: str, *code: tuple[bytes, dict[str, str]], **more: Any) -> Task:
    """A task with archives uploaded."""
    names = [hashlib.sha256(content).hexdigest() for content, _ in code]
    archives = [Archive(sha256=name, **how) for name, (_, how) in zip(names, code, strict=True)]
    job = {"archives": archives, **more.pop("job", {})}
    task = tasks.shell(script, job=job, **more)
    for name, (content, _) in zip(names, code, strict=True):
        (task.folder / "archives" / name).write_bytes(content)
    return task


@pytest.mark.parametrize("compressed", [False, True])
async def test_code_arrives_as_packed(tasks: Tasks, compressed: bool) -> None:
    code = archive(
        ("weights.bin", BINARY),
        ("run.sh*", b"#!/bin/sh\necho ran\n"),
        ("empty", b""),
        ("folder", None),
        ("folder/sub/deep file ü\n.txt", b"x"),
        (os.fsdecode(b"latin-\xe4"), b"y"),
        ("link", "run.sh"),
        ("out", "/etc/passwd"),
        ("n" * 150, b"long"),
        compressed=compressed,
    )
    task = with_code(
        tasks,
        "sha256sum weights.bin; ./link; readlink out; stat -c '%a %s' run.sh empty weights.bin folder;"
        f"cat folder/sub/deep*; cat latin*; cat {'n' * 150}; ls | wc -l; printf '%s' latin*",
        (code, {"path": "."}),
        job={"working_dir": "/workspace/new"},
    )
    assert await task.run() == Exit(0)
    expected = f"{hashlib.sha256(BINARY).hexdigest()}  weights.bin\nran\n/etc/passwd\n"
    expected += "755 19\n644 0\n644 300000\n755 4096\nxylong8\n"
    assert task.log == expected.encode() + b"latin-\xe4"


@pytest.mark.parametrize(
    ("path", "seen"),
    [
        (".", "/work/data"),
        ("sub/x", "/work/sub/x/data"),
        ("/abs/y", "/abs/y/data"),
        ("~/z", "/home/bob/z/data"),
        ("~", "/home/bob/data"),
    ],
)
async def test_paths_and_owner(tasks: Tasks, path: str, seen: str) -> None:
    task = with_code(
        tasks,
        f"cat {seen}; stat -c '%u:%g' {seen} $(dirname {seen}); echo more >> {seen}",
        (archive(("data", b"d\n")), {"path": path}),
        container_user="bob",
        job={"working_dir": "/work"},
    )
    assert await task.run() == Exit(0)
    assert task.log == b"d\n1234:1234\n1234:1234\n"


async def test_several_archives_and_set_id_bits_dropped(tasks: Tasks) -> None:
    evil = tarfile.TarInfo("suid")
    evil.mode = 0o4755
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.addfile(evil)
    task = with_code(
        tasks,
        "cat a b; stat -c %a suid",
        (archive(("a", b"1")), {"path": "."}),
        (archive(("b", b"2\n")), {"path": "."}),
        (buffer.getvalue(), {"path": "."}),
    )
    assert await task.run() == Exit(0)
    assert task.log == b"12\n755\n"


@pytest.mark.parametrize(("action", "log"), [("skip", b"kept\n"), ("error", None)])
async def test_repo_over_files_of_the_image(tasks: Tasks, action: str, log: bytes | None) -> None:
    image = tasks.engine.make_image("perdure.test/full:1", files={"repo/x": b"kept\n"})
    task = with_code(
        tasks,
        "cat x",
        (archive(("x", b"new\n")), {"path": ".", "kind": "repo"}),
        image=image,
        job={"working_dir": "/repo", "repo_exists_action": action},
    )
    if log is None:
        with pytest.raises(ExecutionError, match="/repo is not empty"):
            await task.start()
    else:
        assert await task.run() == Exit(0)
        assert task.log == log


async def test_repo_into_an_empty_folder_of_the_image(tasks: Tasks) -> None:
    image = tasks.engine.make_image("perdure.test/empty:1", changes=("WORKDIR /repo",))
    code = archive(("x", b"new\n"))
    task = with_code(tasks, "cat x", (code, {"path": ".", "kind": "repo"}), image=image)
    assert await task.run() == Exit(0)
    assert task.log == b"new\n"


async def test_no_archive_gets_out_of_the_container(tasks: Tasks) -> None:
    image = tasks.engine.make_image("perdure.test/link:1", changes=("WORKDIR /w",))
    mark = f"perdure-{os.getpid()}"
    code = archive(("../../../../tmp/" + mark, b"x"), ("up", "/../../../tmp"), ("up/" + mark, b"x"))
    task = with_code(tasks, "true", (code, {"path": "."}), image=image)
    try:
        await task.run()
    except ExecutionError as error:
        assert "cannot be put" in error.message
    assert not os.path.lexists(f"/tmp/{mark}")


async def test_archive_that_is_none_is_told(tasks: Tasks) -> None:
    task = with_code(tasks, "true", (b"not a tar at all", {"path": "."}))
    with pytest.raises(ExecutionError, match="not a readable tar archive"):
        await task.start()
