"""Commands, as a real shell runs them."""

from __future__ import annotations

import subprocess

import pytest

from perdure.spec.script import argv, script


def run(*commands: str, shell: str = "bash") -> tuple[int, str]:
    words = argv(commands, entrypoint=None, shell=shell, has_image=False)
    done = subprocess.run(words, capture_output=True, text=True, timeout=20, check=False)
    return done.returncode, done.stdout


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize(
    ("commands", "code", "output"),
    [
        (["echo a", "echo b"], 0, "a\nb\n"),
        (["echo a", "false", "echo b"], 1, "a\n"),
        (["exit 7", "echo b"], 7, ""),
        (["echo a\nfalse\necho b", "echo c"], 0, "a\nb\nc\n"),
        (["echo a\n(exit 3)", "echo c"], 3, "a\n"),
        (["false", "echo a\necho b"], 1, ""),
        (["set -e\nfalse\necho a", "echo b"], 1, ""),
        (["cat <<E\nx\nE", "echo b"], 0, "x\nb\n"),
        (["cat <<E\nx\nE\n", "false", "echo c"], 1, "x\n"),
        (["echo a # why", "echo b"], 0, "a\nb\n"),
        (["# only a comment", "echo b", "  "], 0, "b\n"),
        (["(sleep 0.2; echo late) &", "echo first", "wait"], 0, "first\nlate\n"),
        (["(sleep 0.2; echo late) &\n", "echo first\nwait"], 0, "first\nlate\n"),
        (["cd /", "pwd"], 0, "/\n"),
        (["export A=1", "echo $A"], 0, "1\n"),
        (["A=1", "echo a\necho $A"], 0, "a\n1\n"),
        (["false || echo a", "echo b"], 0, "a\nb\n"),
        (["true && false", "echo b"], 1, ""),
        (["echo a \\", "echo b"], 0, "a\nb\n"),
        (["if true; then echo a; fi", "echo b"], 0, "a\nb\n"),
        (["if true\nthen echo a\nfi", "echo b"], 0, "a\nb\n"),
        (["f() { echo $1; }", "f a"], 0, "a\n"),
        (["echo 'a\nb'", "echo c"], 0, "a\nb\nc\n"),
        (["true &&\\\n echo a", "echo b"], 0, "a\nb\n"),
        (["echo \\&", "echo b"], 0, "&\nb\n"),
    ],
)
def test_commands_run_in_order_and_stop_at_the_first_that_fails(
    commands: list[str], code: int, output: str, shell: str
) -> None:
    assert run(*commands, shell=shell) == (code, output)


def test_the_shell_ends_on_sigterm() -> None:
    words = argv(["echo up", "sleep 30"], entrypoint=None, shell="bash", has_image=False)
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.terminate()
        process.stdout.close()
        assert process.wait(timeout=10) != 0


def test_simple_commands_stay_readable() -> None:
    assert (
        script(["pip install x", "python train.py &", "wait"]) == "pip install x && { python train.py & } && wait"
    )


def test_the_process_of_each_combination() -> None:
    def words(commands: list[str], entrypoint: tuple[str, ...] | None, shell: str | None, image: bool):
        return argv(commands, entrypoint=entrypoint, shell=shell, has_image=image)

    assert words(["x"], None, None, False) == ("/bin/bash", "-c", "x")
    assert words(["x"], None, None, True) == ("/bin/sh", "-c", "x")
    assert words(["x"], None, "/usr/bin/zsh", True) == ("/usr/bin/zsh", "-c", "x")
    assert words([], None, None, True) == ()
    assert words(["--lr 1", "-v"], ("python", "train.py"), "bash", True) == ("python", "train.py", "--lr 1", "-v")
    assert words([], ("python",), None, True) == ("python",)
