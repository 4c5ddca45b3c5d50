"""What reaches the screen. Results and logs go to stdout; what is said about them goes to stderr."""

from __future__ import annotations

import os
import signal
import sys
from functools import cache
from typing import TextIO

from pydantic import BaseModel
from rich.console import Console
from rich.text import Text

from perdure.model.errors import UserError

WIDE = 200
"""Columns of what nobody reads on a terminal."""


@cache
def out() -> Console:
    """For results. Piped, it is wide and plain, so that no line is cut, unless ``COLUMNS`` is set."""
    return Console(width=_width(sys.stdout), highlight=False, soft_wrap=not sys.stdout.isatty())


@cache
def say() -> Console:
    """For what is said on the way."""
    return Console(stderr=True, highlight=False, width=_width(sys.stderr))


def _width(stream: TextIO) -> int | None:
    """None: as wide as ``COLUMNS`` or the terminal says."""
    return None if stream.isatty() or os.environ.get("COLUMNS", "").isdigit() else WIDE


def print_json(document: BaseModel) -> None:
    """The one JSON document of ``--json``."""
    sys.stdout.write(document.model_dump_json(indent=2) + "\n")


def interactive() -> bool:
    """Somebody is there to answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(
    question: str,
    choices: dict[str, str],
    default: str,
    *,
    otherwise: str = "give -y to go ahead without asking",
) -> str:
    """One of ``choices`` (letter: meaning). Without an answer (end of input), ``default``.

    Args:
        otherwise: the hint for when nobody is there: what does without an answer.

    Raises:
        UserError: nobody is there to ask.
    """
    if not interactive():
        raise UserError(f"{question} Nobody is there to answer", hint=otherwise)
    letters = "/".join(letter.upper() if letter == default else letter for letter in choices)
    while True:
        say().print(Text(f"{question} [{letters}] ", style="bold"), end="")
        try:
            answer = _typed().strip().lower()
        except EOFError:
            say().print()
            return default
        if not answer:
            return default
        for letter, meaning in choices.items():
            if answer in (letter, meaning):
                return letter
        say().print(f"Answer {' or '.join(choices.values())}.")


def _typed() -> str:
    """A line; Ctrl-C ends the waiting at once (an event loop's own handler would swallow the first one)."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return input()
    finally:
        signal.signal(signal.SIGINT, before)


def confirm(question: str) -> bool:
    return ask(question, {"y": "yes", "n": "no"}, "n") == "y"


def visible(text: str) -> str:
    """Newlines and control characters of whoever wrote it are shown, not obeyed."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
