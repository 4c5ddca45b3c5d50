"""Lock files that a killed Postgres leaves behind, and whose pid is not it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from perdure.stack.postgres import Postgres


@pytest.fixture
def postgres(tmp_path: Path) -> Postgres:
    one = Postgres(tmp_path, tmp_path, tmp_path / "socket", None)
    one.data.mkdir()
    one.socket.mkdir()
    return one


@pytest.fixture
def zombie() -> Iterator[int]:
    """One that has ended, and whose parent has not yet looked."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    while "Z" not in Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]:
        time.sleep(0.01)
    yield process.pid
    process.wait()


def locks(postgres: Postgres, pid: int) -> list[Path]:
    files = [postgres.data / "postmaster.pid", postgres.socket / ".s.PGSQL.5432.lock"]
    for file in files:
        file.write_text(f"{pid}\n{postgres.data}\n")
    return files


def test_locks_of_a_killed_server_that_is_not_reaped_are_forgotten(postgres: Postgres, zombie: int) -> None:
    files = locks(postgres, zombie)
    postgres.forget_stranger()
    assert [file.exists() for file in files] == [False, False]


def test_locks_whose_pid_is_now_another_programs_are_forgotten(postgres: Postgres) -> None:
    files = locks(postgres, os.getpid())
    postgres.forget_stranger()
    assert [file.exists() for file in files] == [False, False]


def test_locks_of_a_living_server_are_kept(postgres: Postgres) -> None:
    living = subprocess.Popen(
        [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)", postgres.data],
        stdout=subprocess.PIPE,
    )
    try:
        assert living.stdout is not None
        living.stdout.readline()
        files = locks(postgres, living.pid)
        postgres.forget_stranger()
        assert [file.exists() for file in files] == [True, True]
    finally:
        living.kill()
        living.communicate()
