"""A value typed or pasted at the terminal, and not shown there.

Not ``getpass``: it takes a line as the terminal hands it over, which cuts it silently at 4,095 bytes (at 1,024 on
macOS), and of a pasted key of many lines it takes the first.
"""

from __future__ import annotations

import os
import select
import sys
import termios

from perdure.cli.terminal import say
from perdure.model.errors import UserError

SETTLE = 0.1
"""Seconds in which the rest of a pasted text arrives."""

END_OF_INPUT, ERASE, ERASE_LINE = b"\x04", (0x08, 0x7F), 0x15


def typed(question: str) -> str:
    """One line, of any length.

    Raises:
        UserError: it is more than one, or not text.
    """
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    quiet = termios.tcgetattr(terminal)
    quiet[3] &= ~(termios.ECHO | termios.ICANON)
    say().print(question, end="", markup=False)
    termios.tcsetattr(terminal, termios.TCSADRAIN, quiet)
    try:
        line, end, rest = _received(terminal).partition(b"\n")
        more = rest or (end and select.select([terminal], [], [], SETTLE)[0])
    finally:
        termios.tcsetattr(terminal, termios.TCSAFLUSH, before)  # what came after it must not reach the shell
        say().print()
    if more:
        raise UserError("more than one line was typed", hint="pipe it in, with `-` in place of the value")
    try:
        return _edited(line).decode()
    except UnicodeDecodeError:
        raise UserError("what was typed is not text", hint="encode it, as base64") from None


def _received(terminal: int) -> bytes:
    """Up to the first line end and whatever came with it, or the end of the input."""
    found = b""
    while b"\n" not in found:
        piece = os.read(terminal, 4096)
        if piece in (b"", END_OF_INPUT):
            break
        found += piece
    return found


def _edited(line: bytes) -> bytes:
    """What is left of it after the keys that take something back."""
    kept = bytearray()
    for byte in line:
        if byte in ERASE:
            while kept and kept.pop() & 0xC0 == 0x80:  # a character of several bytes goes whole
                pass
        elif byte == ERASE_LINE:
            kept.clear()
        else:
            kept.append(byte)
    return bytes(kept)
