"""A task's main process.

``commands`` run one after another in one shell, and the first that fails ends the job with its exit code:
``[shell, "-c", script]``. dstack starts the shell with ``-i``; we do not, because an interactive bash ignores
SIGTERM, so that no job could stop gracefully (and because it reads start-up files that change what commands mean).

Simple commands are joined with ``&&``. One that spans lines, holds a comment or a here-document, or ends in a
backslash cannot be followed on its line, nor can ``&&`` guard all lines of the next: between those stands a line
that leaves the shell if the last command failed. A trailing ``&`` keeps its meaning.

With an ``entrypoint`` there is no shell: its words are the process, and each command is one more argument.
With an image and neither, the image's own entrypoint runs (no words at all).
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from functools import lru_cache

_STOP_ON_FAILURE = "case $? in 0) ;; *) exit $? ;; esac"
_SHELLS = {"sh": "/bin/sh", "bash": "/bin/bash"}


def argv(
    commands: Sequence[str], *, entrypoint: Sequence[str] | None, shell: str | None, has_image: bool
) -> tuple[str, ...]:
    """The words of the main process; none: the image's own."""
    if entrypoint is not None:
        return (*entrypoint, *commands)
    text = script(commands)
    if not text:
        return ()
    chosen = shell or ("sh" if has_image else "bash")
    return (_SHELLS.get(chosen, chosen), "-c", text)


def script(commands: Sequence[str]) -> str:
    """One script of all commands; each runs only if those before it succeeded."""
    kept = [command.strip("\n") for command in commands if not says_nothing(command)]
    text = ""
    for previous, command in zip([None, *kept], kept, strict=False):
        if previous is None:
            text = _followable(command)
        elif _is_simple(previous) and _is_simple(command):
            text += f" && {_followable(command)}"
        else:
            text += f"\n{_STOP_ON_FAILURE}\n{_followable(command)}"
    return text


@lru_cache(maxsize=4)
def split_words(entrypoint: str) -> tuple[str, ...]:
    """An entrypoint as a shell would split it.

    Raises:
        ValueError: a quote is not closed.
    """
    return tuple(shlex.split(entrypoint))


def says_nothing(command: str) -> bool:
    """Only blanks and comments."""
    return all(not line.strip() or line.lstrip().startswith("#") for line in command.splitlines())


def _is_simple(command: str) -> bool:
    return "\n" not in command and "#" not in command and "<<" not in command and not command.endswith("\\")


def _followable(command: str) -> str:
    """``sleep 9 &`` in braces, so that ``&&`` may stand after it."""
    bare = command.rstrip()
    if _is_simple(command) and bare.endswith("&") and not bare.endswith(("&&", "\\&")):
        return f"{{ {bare} }}"
    # A backslash at the end would glue the next line on; an empty line ends what it continues.
    return command + "\n" if command.endswith("\\") else command
