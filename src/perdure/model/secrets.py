"""What a secret's name and value may be: the same for the command line, any client, and the worker."""

from __future__ import annotations

import re

from perdure.model.errors import UserError
from perdure.model.ids import check_project_name

SECRET_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")
"""dstack's names. Its references take fewer of them; ours take them all."""

LONGEST = 5000
"""Characters of a value, as in dstack."""

_IN_FILES = "a secret is a key or a password: encrypt what is longer, and keep its key here"


def check_secret_name(project: str, name: str) -> None:
    """
    Raises:
        UserError: either is not a name.
    """
    check_project_name(project)
    if not SECRET_NAME.fullmatch(name):
        raise UserError(f"{name[:100]!r} is not the name of a secret", hint="1 to 200 of a-z, A-Z, 0-9, - and _")


def check_secret_value(name: str, value: str) -> None:
    """
    Raises:
        UserError: it cannot be kept, or no job could be given it. The sentence never holds the value.
    """
    if not value:
        raise UserError(f"the value of the secret {name} is empty", hint="did the command that prints it fail?")
    if len(value) > LONGEST:
        raise UserError(
            f"the value of the secret {name} has {len(value)} characters, and {LONGEST} are the most",
            hint=_IN_FILES,
        )
    if "\0" in value:
        raise UserError(f"the value of the secret {name} is not text: it has a NUL", hint="encode it, as base64")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UserError(
            f"the value of the secret {name} is not text: it has bytes that are not UTF-8",
            hint="encode it, as base64",
        ) from None
