"""``${{ namespace.name }}``: one pass over the parsed values.

What may be referred to depends on where:

====================  ================================  =====================================================
reference             where                             stands for
====================  ================================  =====================================================
``run.args``          commands                          the arguments after ``--``, quoted for the shell
``env.X``             ``registry_auth``, probes         the run's environment variable
``secrets.x``         env values, ``registry_auth``     not supported yet, and refused
====================  ================================  =====================================================

``$$`` is a literal ``$`` in commands, env values and ``registry_auth``, so ``$${{ x }}`` is the text ``${{ x }}``.
(A shell's own process id is ``$BASHPID``, or ``$$$$`` here.) Values that come with the submission are not touched.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from perdure.spec.grammar.base import told

_TOKEN = re.compile(r"\$\$|\$\{\{(?P<inside>.*?)\}\}|(?P<open>\$\{\{)", re.DOTALL)
_NAME = re.compile(r"([A-Za-z_]\w*)\.([A-Za-z_]\w*)", re.ASCII)
_NODE_ADDRESS = re.compile(r"groups\[\d+\]\.(nodes|replicas)\[\d+\]\.IP_ADDRESS")

Value = TypeVar("Value")


class BadReference(Exception):
    """What is wrong with a ``${{ … }}``, and what to write instead."""

    def __init__(self, message: str, hint: str | None = None):
        super().__init__(message)
        self.message = message
        self.hint = hint


def interpolate(text: str, resolve: Callable[[str, str], str | Value]) -> list[str | Value]:
    """The text in pieces, each reference replaced by what ``resolve(namespace, name)`` gives.

    Raises:
        BadReference: a reference is not closed, is malformed, or is not known here.
    """
    pieces: list[str | Value] = []
    end = 0
    for match in _TOKEN.finditer(text):
        pieces.append(text[end : match.start()])
        end = match.end()
        if match["open"]:
            raise BadReference("has a ${{ without its }}", "a literal ${{ is written $${{")
        pieces.append("$" if match["inside"] is None else _one(match["inside"].strip(), resolve))
    pieces.append(text[end:])
    return [piece for piece in pieces if piece != ""]


def _one(name: str, resolve: Callable[[str, str], str | Value]) -> str | Value:
    if _NODE_ADDRESS.fullmatch(name):
        raise BadReference(f"refers to {name}: groups are not supported yet")
    match = _NAME.fullmatch(name)
    if match is None:
        raise BadReference(f"refers to {told(name)}, which is not a name of the form a.b")
    return resolve(match[1], match[2])
