"""What a job finds around it: its code, its folder, its variables; and what it does not see."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from pathlib import Path
from typing import Any
from uuid import uuid4

from perdure.agents.protocol import JobState, TaskConfig
from tests.agents.processes import Host, Started, job_of, new_task, start, submit


def packed(**files: str) -> bytes:
    """A tar of these files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name.replace("__", "/"))
            member.size, member.mode = len(content), 0o755
            tar.addfile(member, io.BytesIO(content.encode()))
    return buffer.getvalue()


async def run_with_code(
    one: Host, script: str, archives: list[tuple[bytes, str, str]], task: TaskConfig | None = None, **fields: Any
) -> tuple[JobState, bytes]:
    """Upload archives of (content, path, kind), run, and give the end and the log."""
    task = task or new_task()
    shim, runner, info = await submit(one, task)
    wanted = [
        {"sha256": hashlib.sha256(content).hexdigest(), "path": path, "kind": kind}
        for content, path, kind in archives
    ]
    await runner.submit(job_of(task, script, archives=wanted, **fields))
    for content, _, _ in archives:

        async def stream(content: bytes = content):
            yield content

        await runner.upload_archive(hashlib.sha256(content).hexdigest(), stream())
    await runner.run()
    job = Started(one, shim, task, info, runner)
    return await job.ended(), await job.log()


async def test_the_repo_is_the_working_dir_and_files_go_where_they_say(here: Host) -> None:
    archives = [
        (packed(train="#!/bin/sh\necho trained\n", src__a="a"), ".", "repo"),
        (packed(b="b"), "data/in", "files"),
        (packed(c="c"), "~/conf", "files"),
    ]
    state, log = await run_with_code(here, "./train; cat src/a data/in/b ~/conf/c; pwd; echo $HOME", archives)
    assert state.exit_status == 0, log
    lines = log.decode().split("\n")
    assert lines[0] == "trained"
    assert lines[1].startswith("abc")
    assert lines[1].removeprefix("abc") == lines[2], "the working directory is HOME"


async def test_a_relative_working_dir_is_made(here: Host) -> None:
    state, log = await run_with_code(
        here, "pwd; echo $HOME; cat a; touch mine", [(packed(a="a"), ".", "repo")], working_dir="deep/er"
    )
    assert state.exit_status == 0, log
    pwd, home, _ = log.decode().split("\n")
    assert pwd == f"{home}/deep/er"


async def test_an_absolute_path_is_the_jobs_own_and_never_the_hosts(here: Host) -> None:
    name = f"/{uuid4().hex}"
    state, log = await run_with_code(
        here,
        f"pwd; cat a {name}/sub/b /usr{name}/d; echo; touch mine; ls /",
        [
            (packed(a="a"), ".", "repo"),
            (packed(b="b"), f"{name}/sub", "files"),
            (packed(d="d"), f"/usr{name}", "files"),
        ],
        working_dir=name,
    )
    assert state.exit_status == 0, log
    assert log.decode().startswith(f"{name}\nabd\n")
    assert {"bin", "etc", "usr", "proc", "tmp"} <= set(log.decode().split())
    assert not Path(name).exists()
    assert not Path(f"/usr{name}").exists()


async def test_an_absolute_path_that_the_host_has_is_covered_and_not_written(here: Host) -> None:
    before = sorted(os.listdir("/usr/local"))  # noqa: PTH208
    state, log = await run_with_code(
        here, "ls /usr/local; cat /usr/local/a", [(packed(a="a"), "/usr/local", "files")]
    )
    assert (state.exit_status, log) == (0, b"a\na")
    assert sorted(os.listdir("/usr/local")) == before  # noqa: PTH208


async def test_a_working_dir_that_the_host_has_is_the_hosts(here: Host) -> None:
    state, log = await run_with_code(here, "pwd; ls | head -1", [], working_dir="/usr")
    assert (state.exit_status, log.split()[0]) == (0, b"/usr")
    assert log.split()[1] in {os.fsencode(name) for name in os.listdir("/usr")}  # noqa: PTH208


async def test_without_a_sandbox_absolute_paths_are_refused_plainly(bare: Host) -> None:
    name = f"/{uuid4().hex}"
    for fields, archives in (
        ({"working_dir": name}, []),
        ({}, [(packed(a="a"), name, "files")]),
    ):
        state, _ = await run_with_code(bare, "true", archives, **fields)
        assert state.reason == "executor_error"
        assert name in state.message
        assert "bubblewrap" in state.message
    assert not Path(name).exists()


async def test_a_path_that_leads_out_is_refused(here: Host) -> None:
    for fields, archives in (
        ({"working_dir": "../x"}, []),
        ({}, [(packed(a="a"), "../../x", "files")]),
        ({}, [(packed(a="a"), "/", "files")]),
    ):
        state, _ = await run_with_code(here, "true", archives, **fields)
        assert state.reason == "executor_error"
        assert "leads out" in state.message


async def test_a_hostile_archive_ends_the_job_before_it_runs(here: Host) -> None:
    hostile = packed(**{"..__..__escape": "x"})
    state, log = await run_with_code(here, "echo ran", [(hostile, ".", "repo")])
    assert (state.reason, log) == ("executor_error", b"")
    assert "could not be unpacked" in state.message


async def test_a_repo_is_not_put_into_a_full_folder_unless_told_to_skip(here: Host) -> None:
    archives = [(packed(old="old"), "code", "files"), (packed(new="new"), "code", "repo")]
    state, _ = await run_with_code(here, "ls code", archives)
    assert state.reason == "container_exited_with_error"
    assert "not empty" in state.message
    state, log = await run_with_code(here, "ls code", archives, repo_exists_action="skip")
    assert (state.exit_status, log) == (0, b"old\n")


async def test_every_job_finds_its_variables_under_both_names_and_the_users_win(here: Host) -> None:
    task = new_task()
    job = await start(
        here,
        "env -0",
        task,
        node=1,
        node_addresses=["127.0.0.1", "127.0.0.2"],
        gpus_per_node=4,
        env={"MINE": "a b\n'c'", "DSTACK_NODE_RANK": "7", "PYTHONUNBUFFERED": ""},
    )
    found = dict(word.split("=", 1) for word in (await job.log()).decode().split("\0") if word)
    for name, value in {
        "RUN_NAME": "job",
        "RUN_ID": str(task.run_id),
        "JOB_ID": str(task.id),
        "REPO_ID": "",
        "GPUS_NUM": "8",
        "GPUS_PER_NODE": "4",
        "NODES_NUM": "2",
        "MASTER_NODE_IP": "127.0.0.1",
        "NODES_IPS": "127.0.0.1\n127.0.0.2",
        "WORKING_DIR": found["HOME"],
        "REPO_DIR": found["HOME"],
    }.items():
        assert found[f"DSTACK_{name}"] == found[f"PERDURE_{name}"] == value, name
    assert (found["PERDURE_NODE_RANK"], found["DSTACK_NODE_RANK"]) == ("1", "7")
    assert found["MINE"] == "a b\n'c'"
    assert found["PYTHONUNBUFFERED"] == ""
    hostfile = await start(
        here, "cat $DSTACK_MPI_HOSTFILE", node_addresses=["10.0.0.1", "10.0.0.2"], gpus_per_node=2
    )
    assert await hostfile.log() == b"10.0.0.1 slots=2\n10.0.0.2 slots=2\n"


async def test_nothing_of_the_agents_own_environment_reaches_a_job(here: Host) -> None:
    here.kill_shim()
    here.environment = {"AWS_SECRET_ACCESS_KEY": "leak", "PERDURE_DATABASE_URL": "leak"}
    here.start_shim()
    assert b"leak" not in await (await start(here, "env; cat /proc/*/environ 2>/dev/null; true")).log()


async def test_a_job_sees_neither_perdures_state_nor_other_jobs(here: Host) -> None:
    (here.base / "home" / "stack.json").write_text("secret")
    (here.base / "home").chmod(0o755)
    other = await start(here, "echo mine > file; sleep 100")
    job = await start(
        here,
        f"ls -A {here.base}/home {here.folder} {here.work} 2>&1; "
        f"cat {here.work}/{other.id}/home/file {here.folder}/instance.json 2>&1; "
        "ls /proc | grep -c '^[0-9]'; ls -ld $HOME",
    )
    log = (await job.log()).decode()
    assert "secret" not in log
    assert "the-token" not in log
    assert "mine" not in log
    assert str(job.id) in log


async def test_as_root_a_job_is_somebody_else_in_a_folder_of_its_own(here: Host) -> None:
    job = await start(here, "id -u; touch ~/mine; stat -c %u ~ ~/mine; grep CapEff /proc/self/status")
    lines = (await job.log()).decode().split("\n")
    uid = "65534" if os.getuid() == 0 else str(os.getuid())
    assert lines[:3] == [uid, uid, uid]
    assert lines[3].split()[1] == "0000000000000000"
    assert (await job.runner.run()).username == ("nobody" if os.getuid() == 0 else os.environ.get("USER"))


async def test_a_job_reaches_its_folder_through_folders_closed_to_its_user(here: Host) -> None:
    here.base.chmod(0o700)
    job = await start(here, "touch ~/file && ls ~")
    assert ((await job.ended()).exit_status, await job.log()) == (0, b"file\n")


async def test_a_user_that_the_host_lacks_is_told(here: Host) -> None:
    job = await start(here, "true", new_task(container_user="no-such-user"))
    state = await job.ended()
    assert (state.reason, state.message) == ("executor_error", "This host has no user no-such-user.")


async def test_folders_of_the_host_are_mounted_where_the_job_wants_them(here: Host) -> None:
    shared = here.base / "shared"
    mounts = [
        {"instance_path": str(shared), "path": "/mnt/data"},
        {"instance_path": str(here.base / "absent"), "path": "/absent", "optional": True},
    ]
    job = await start(here, "echo x > /mnt/data/file; ls -d /absent", new_task(instance_mounts=mounts))
    assert (await job.ended()).exit_status != 0
    assert (shared / "file").read_text() == "x\n"
    assert not (here.base / "absent").exists()


async def test_an_empty_command_is_told(here: Host) -> None:
    state = await (await start(here, [])).ended()
    assert state.reason == "executor_error"
    assert "nothing to run" in state.message
