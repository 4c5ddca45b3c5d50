"""A job in a container: its command, user, folder, limits, and how its end is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from perdure.agents.docker_container import creation
from perdure.agents.execution import ExecutionError, Exit
from perdure.agents.protocol import Mount
from tests.agents.docker_tasks import Tasks

MB = 1 << 20


async def test_the_command_is_the_main_process_under_an_init(tasks: Tasks) -> None:
    task = tasks.make("sleep", "60")
    answer = await task.start()
    assert (answer.working_dir, answer.username) == ("/", "root")
    container = task.container
    assert (container["Path"], container["Args"]) == ("sleep", ["60"])
    assert container["HostConfig"]["Init"]
    assert container["Name"] == f"/perdure-train-0-0-{task.config.id.hex[:12]}"
    await task.execution.kill()


@pytest.mark.parametrize("status", [0, 1, 3, 126, 127, 137, 143, 255])
async def test_exit_status_is_passed_on(tasks: Tasks, status: int) -> None:
    assert await tasks.shell(f"exit {status}").run() == Exit(status)


@pytest.mark.parametrize(("signal", "status"), [("TERM", 143), ("KILL", 137), ("SEGV", 139)])
async def test_death_by_signal_is_told_as_a_shell_tells_it(tasks: Tasks, signal: str, status: int) -> None:
    assert await tasks.shell(f"kill -{signal} $$").run() == Exit(status)


@pytest.mark.parametrize("command", ["train.py", "/opt/train.py", "./train.py"])
async def test_command_that_does_not_exist_is_named(tasks: Tasks, command: str) -> None:
    assert await tasks.make(command, "--fast").run() == Exit(127, f"command not found: {command}")


async def test_command_that_a_shell_does_not_find_is_in_the_log(tasks: Tasks) -> None:
    task = tasks.shell("train.py")
    assert await task.run() == Exit(127)
    assert task.log == b"/bin/sh: train.py: not found\n"


async def test_more_memory_than_the_limit_is_told(tasks: Tasks) -> None:
    task = tasks.shell("dd if=/dev/zero of=/dev/null bs=200M count=1", memory=64 * MB)
    assert await task.run() == Exit(137, "out of memory: the limit is 64 MB")


async def test_child_killed_for_memory_does_not_spoil_a_success(tasks: Tasks) -> None:
    task = tasks.shell("dd if=/dev/zero of=/dev/null bs=200M count=1; exit 0", memory=64 * MB)
    assert await task.run() == Exit(0)


async def test_limits_reach_the_container(tasks: Tasks) -> None:
    task = tasks.shell("df -k /dev/shm | tail -1 | awk '{print $2}'", cpu=0.5, memory=96 * MB, shm_size=8 * MB)
    await task.run()
    assert task.log == b"8192\n"
    limits = task.container["HostConfig"]
    assert (limits["NanoCpus"], limits["Memory"], limits["MemorySwap"]) == (500_000_000, 96 * MB, 96 * MB)


@pytest.mark.parametrize(
    ("user", "seen"), [("", "0 0 /root"), ("bob", "1234 1234 /home/bob"), ("77:50", "77 50 /"), ("bob:staff", None)]
)
async def test_user_and_home_are_the_images(tasks: Tasks, user: str, seen: str | None) -> None:
    task = tasks.shell("echo $(id -u) $(id -g) $HOME", container_user=user)
    answer = await task.start()
    await task.execution.wait()
    assert task.log.decode().strip() == (seen or "1234 50 /home/bob")
    assert answer.username == (user or "root")


async def test_user_the_image_does_not_know_is_told(tasks: Tasks) -> None:
    with pytest.raises(ExecutionError, match="has no user 'eve'"):
        await tasks.make("true", container_user="eve").start()


async def test_without_a_command_the_image_decides(tasks: Tasks) -> None:
    image = tasks.engine.make_image(
        "perdure.test/own:1",
        changes=('ENTRYPOINT ["/bin/echo", "I am"]', 'CMD ["the image"]', "WORKDIR /srv", "USER bob"),
    )
    task = tasks.make(image=image)
    answer = await task.start()
    assert (answer.working_dir, answer.username) == ("/srv", "bob")
    assert await task.execution.wait() == Exit(0)
    assert task.log == b"I am the image\n"


async def test_a_command_replaces_the_images_entrypoint(tasks: Tasks) -> None:
    image = tasks.engine.make_image("perdure.test/own:2", changes=('ENTRYPOINT ["/bin/false"]', 'CMD ["x"]'))
    task = tasks.make("echo", "mine", image=image)
    assert await task.run() == Exit(0)
    assert task.log == b"mine\n"


async def test_no_command_at_all_is_told(tasks: Tasks) -> None:
    with pytest.raises(ExecutionError, match="has no command of its own"):
        await tasks.make().start()


@pytest.mark.parametrize(
    ("wish", "seen"), [(None, "/srv"), ("/data/run", "/data/run"), ("sub/folder", "/srv/sub/folder")]
)
async def test_working_directory(tasks: Tasks, wish: str | None, seen: str) -> None:
    image = tasks.engine.make_image("perdure.test/dir:1", changes=("WORKDIR /srv",))
    task = tasks.shell("pwd; echo $DSTACK_WORKING_DIR", image=image, job={"working_dir": wish})
    assert (await task.start()).working_dir == seen
    await task.execution.wait()
    assert task.log.decode() == f"{seen}\n{seen}\n"


async def test_working_directory_that_is_a_file_is_told(tasks: Tasks) -> None:
    with pytest.raises(ExecutionError, match="/etc/passwd is not a folder"):
        await tasks.make("true", job={"working_dir": "/etc/passwd"}).start()


async def test_environment_and_hostfile(tasks: Tasks) -> None:
    env = {"A": "x y", "EMPTY": "", "LINES": "1\n2", "UMLAUT": "ü"}
    task = tasks.shell(
        'printf "%s|" "$A" "${EMPTY-unset}" "$LINES" "$UMLAUT" "$DSTACK_NODE_RANK"; cat $PERDURE_MPI_HOSTFILE',
        job={"env": env, "node_addresses": ["10.0.0.1", "10.0.0.2"], "node": 1, "gpus_per_node": 2},
    )
    await task.run()
    assert task.log.decode() == "x y||1\n2|ü|1|10.0.0.1 slots=2\n10.0.0.2 slots=2\n"


async def test_value_larger_than_linux_takes_is_told(tasks: Tasks) -> None:
    with pytest.raises(ExecutionError, match="The environment variable BIG has 200000 bytes"):
        await tasks.make("true", job={"env": {"BIG": "x" * 200_000}}).start()


async def test_environment_larger_than_linux_takes_is_told(tasks: Tasks) -> None:
    env = {f"V{number}": "x" * 100_000 for number in range(30)}
    with pytest.raises(ExecutionError, match=r"environment and the commands have 30\d{5} bytes"):
        await tasks.make("true", job={"env": env}).start()


async def test_environment_that_linux_just_takes_is_handed_over(tasks: Tasks) -> None:
    env = {f"V{number}": "x" * 100_000 for number in range(20)}
    task = tasks.shell("env | wc -c", job={"env": env})
    assert await task.run() == Exit(0)
    assert int(task.log) > 2_000_000


async def test_script_larger_than_linux_takes_is_told(tasks: Tasks) -> None:
    with pytest.raises(ExecutionError, match="The commands have 200000 bytes"):
        await tasks.shell("#" * 200_000).start()


async def test_volumes_of_the_image_are_gone_with_the_task(tasks: Tasks) -> None:
    image = tasks.engine.make_image("perdure.test/volume:1", changes=("VOLUME /data",))
    task = tasks.shell("echo x > /data/x", image=image)
    await task.run()
    assert len(tasks.engine.volumes()) == 1
    await task.preparation.remove(task.config, task.folder)
    assert tasks.engine.volumes() == []


async def test_folders_of_the_instance_are_in_the_job(tasks: Tasks, tmp_path: Path) -> None:
    new = tmp_path / "made" / "for it"
    mounts = [
        Mount(instance_path=str(new), path="/mnt/data"),
        Mount(instance_path="/proc/none", path="/mnt/none", optional=True),
    ]
    task = tasks.shell("echo kept > /mnt/data/x; ls /mnt", instance_mounts=mounts, container_user="bob")
    assert await task.run() == Exit(0)
    assert (new / "x").read_text() == "kept\n"
    assert task.log == b"data\n"


async def test_folder_that_cannot_be_made_is_told(tasks: Tasks) -> None:
    task = tasks.make("true", instance_mounts=[Mount(instance_path="/proc/none", path="/mnt")])
    with pytest.raises(ExecutionError, match="/proc/none cannot be made") as error:
        await task.prepare()
    assert error.value.reason == "executor_error"


def host_config(tasks: Tasks, **config: Any) -> dict[str, Any]:
    """What the engine would be asked for."""
    task = tasks.make("true", **config)
    body = creation(task.config, task.job, working_dir="/", hostfile=Path("/h"), ports=[], log_drivers=["local"])
    return body["HostConfig"]


async def test_gpus_are_asked_for_by_number_or_by_name(tasks: Tasks) -> None:
    assert "DeviceRequests" not in host_config(tasks)
    (some,) = host_config(tasks, gpu=2)["DeviceRequests"]
    assert (some["Count"], some["Driver"]) == (2, "nvidia")
    (these,) = host_config(tasks, gpu=2, gpu_ids=["0", "3"])["DeviceRequests"]
    assert these["DeviceIDs"] == ["0", "3"]
    assert "Count" not in these


async def test_gpus_of_a_host_without_are_told(tasks: Tasks) -> None:
    with pytest.raises(ExecutionError, match="cannot give GPUs to a container"):
        await tasks.make("true", gpu=1).start()


async def test_privileged_only_when_asked(tasks: Tasks) -> None:
    assert not host_config(tasks)["Privileged"]
    assert host_config(tasks, privileged=True)["Privileged"]


async def test_started_again_it_runs_once(tasks: Tasks, tmp_path: Path) -> None:
    mount = Mount(instance_path=str(tmp_path), path="/out")
    task = tasks.shell("echo once >> /out/count", instance_mounts=[mount])
    first = await task.start()
    assert await task.execution.start(task.job) == first
    await task.execution.wait()
    assert await task.execution.start(task.job) == first
    assert await task.execution.wait() == Exit(0)
    assert (tmp_path / "count").read_text() == "once\n"


async def test_container_removed_by_somebody_else_is_told(tasks: Tasks) -> None:
    task = tasks.make("sleep", "60")
    await task.start()
    tasks.engine.http.delete(f"/containers/{task.container['Id']}", params={"force": 1})
    with pytest.raises(ExecutionError, match="somebody removed it"):
        await task.execution.wait()
