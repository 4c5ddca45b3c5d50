"""``${{ … }}``: the one reader of references, and what may be referred to where.

====================================  =====================================  ====================================
reference                             where                                  stands for
====================================  =====================================  ====================================
``run.args``                          commands, also of groups               the arguments after ``--``, quoted
``groups[i].nodes[j].IP_ADDRESS``     commands of a task with groups         the address of that node
``groups[i].replicas[j].IP_ADDRESS``  commands of a service with groups      the address of that replica
``secrets.x``                         env values, ``registry_auth``          a secret of the project
``env.X``                             ``registry_auth``, probes              the run's environment variable
``dstack.node_rank``, ``.job_num``    names of network volumes               the number of the job
``run.project_name``                  ``domain`` of a gateway                the project
====================================  =====================================  ====================================

``$$`` is a literal ``$`` in all of these places and in ``init``, once: ``$${{ x }}`` is the text ``${{ x }}``.
(A shell's own process id is ``$BASHPID``, or ``$$$$`` here.) Values that come with the submission are not touched.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from perdure.spec.grammar.base import told

SECRET_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")
"""Every name that a secret can have may be referred to."""

_TOKEN = re.compile(r"\$\$|\$\{\{(?P<inside>.*?)\}\}|(?P<open>\$\{\{)", re.DOTALL)
_DOTTED = re.compile(r"([A-Za-z_]\w*)\.([A-Za-z_]\w*)", re.ASCII)
_ADDRESS = re.compile(r"groups\[([0-9]{1,6})\]\.(nodes|replicas)\[([0-9]{1,6})\]\.IP_ADDRESS")
_LITERAL = "a literal ${{ is written $${{"


@dataclass(frozen=True)
class Named:
    """``namespace.name``"""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}.{self.name}"


@dataclass(frozen=True)
class Address:
    """``groups[group].nodes[index].IP_ADDRESS``; ``of``: ``nodes`` or ``replicas``."""

    group: int
    of: str
    index: int

    def __str__(self) -> str:
        return f"groups[{self.group}].{self.of}[{self.index}].IP_ADDRESS"


Reference: TypeAlias = Named | Address


class Place(Enum):
    """Where a text stands: its names for people, and what it may refer to."""

    COMMAND = ("a command", ("run.args",))
    INIT = ("init", ())
    ENV = ("env", ("secrets.NAME",))
    LOGIN = ("registry_auth", ("env.NAME", "secrets.NAME"))
    PROBE = ("a probe", ("env.NAME",))
    VOLUME = ("the name of a volume", ("dstack.node_rank", "dstack.job_num"))
    DOMAIN = ("the domain of a gateway", ("run.project_name",))

    @property
    def words(self) -> str:
        return self.value[0]

    @property
    def known(self) -> tuple[str, ...]:
        return self.value[1]

    def knows(self, reference: Named) -> bool:
        return str(reference) in self.known or f"{reference.namespace}.NAME" in self.known


class BadReference(Exception):
    """What is wrong with a ``${{ … }}``, and what to write instead."""

    def __init__(self, message: str, hint: str | None = None):
        super().__init__(message)
        self.message = message
        self.hint = hint


def pieces(text: str) -> list[str | Reference]:
    """The text in pieces: what is meant literally, and each reference.

    Raises:
        BadReference: one is not closed, or is not a name.
    """
    if "$" not in text:
        return [text] if text else []
    found: list[str | Reference] = []
    literal, end = "", 0
    for match in _TOKEN.finditer(text):
        literal += text[end : match.start()]
        end = match.end()
        if match["open"]:
            raise BadReference("has a ${{ without its }}", _LITERAL)
        if match["inside"] is None:
            literal += "$"
            continue
        found += [literal] if literal else []
        literal = ""
        found.append(_reference(match["inside"].strip()))
    literal += text[end:]
    return [*found, literal] if literal else found


def doubled(text: str) -> bool:
    """Has a ``$$`` that does not merely keep a ``${{`` from being read: the writer may have meant two dollars."""
    return any(
        match[0] == "$$" and not text.startswith("{{", match.end()) for match in _TOKEN.finditer(text) if match
    )


def _reference(name: str) -> Reference:
    if match := _ADDRESS.fullmatch(name):
        return Address(int(match[1]), match[2], int(match[3]))
    if match := _DOTTED.fullmatch(name):
        return Named(match[1], match[2])
    namespace, _, rest = name.partition(".")
    if namespace == "secrets" and SECRET_NAME.fullmatch(rest):
        return Named(namespace, rest)
    if namespace.startswith("groups["):
        hint = "write groups[0].nodes[0].IP_ADDRESS, or in a service groups[0].replicas[0].IP_ADDRESS"
        raise BadReference(f"refers to {told(name)}, which is not an address of a group", hint)
    raise BadReference(f"refers to {told(name)}, which is not a name of the form a.b", _LITERAL)
