"""``perdure secret``: set, get, list, delete."""

from __future__ import annotations

import sys

from rich.table import Table

from perdure.cli.session import with_client
from perdure.cli.tables import Rows
from perdure.cli.terminal import confirm, interactive, out, print_json, say
from perdure.cli.words import ago
from perdure.client.client import PerdureClient, user_name
from perdure.model.api import SecretRow, SecretRows
from perdure.model.base import Message
from perdure.model.errors import UserError
from perdure.model.secrets import LONGEST, check_secret_name

STDIN = "-"


class ShownSecret(Message):
    """``perdure secret get --json``."""

    name: str
    value: str


def give(project: str, name: str, value: str | None, *, json: bool) -> None:
    check_secret_name(project, name)
    if value is None:
        value = _asked(name)
    elif value == STDIN:
        value = _piped(name)

    async def work(client: PerdureClient) -> SecretRow:
        return await client.secrets.set(project, name, value, user_name())

    row = with_client(work)
    if json:
        print_json(row)
    else:
        say().print(f"Secret {name} is set." if row.created_at == row.updated_at else f"Secret {name} is changed.")


def show(project: str, name: str, *, json: bool) -> None:
    value = with_client(lambda client: client.secrets.get(project, name))
    if json:
        print_json(ShownSecret(name=name, value=value))
    else:
        sys.stdout.buffer.write(f"{value}\n".encode())
        sys.stdout.buffer.flush()


def show_all(project: str, *, json: bool) -> None:
    rows = with_client(lambda client: client.secrets.list(project))
    if json:
        print_json(SecretRows(secrets=rows))
    elif rows:
        out().print(_table(rows))
    else:
        say().print(f"No secrets in project {project}. Begin with: perdure secret set NAME")


def delete(project: str, name: str, *, yes: bool) -> None:
    async def work(client: PerdureClient) -> None:
        await client.secrets.find(project, name)
        if yes or confirm(f"Delete the secret {name}? Jobs that need it can start no more."):
            await client.secrets.delete(project, name, user_name())
            say().print(f"Secret {name} is deleted.")

    with_client(work)


def _table(rows: tuple[SecretRow, ...]) -> Table:
    made = Rows("NAME", "CHANGED", "BY", "CREATED", "CREATED BY", spared=("CREATED BY",))
    for row in rows:
        made.add(row.name, ago(row.updated_at), row.updated_by, ago(row.created_at), row.created_by)
    return made.table


def _asked(name: str) -> str:
    """
    Raises:
        UserError: nobody is there to ask, or more than one line was typed.
    """
    if not interactive():
        raise UserError(
            f"the secret {name} is given no value, and nobody is there to ask",
            hint=f"pipe it in: … | perdure secret set {name} -",
        )
    from perdure.cli.hidden import typed

    return typed(f"Value of {name}: ")


def _piped(name: str) -> str:
    """All of stdin, less the line end that `echo` (and `perdure secret get`) puts after it.

    Raises:
        UserError: it is not text, or cannot be read.
    """
    try:
        found = sys.stdin.buffer.read(4 * LONGEST + 4)  # more is too long, and may never end
    except OSError as error:
        raise UserError(f"stdin cannot be read: {error.strerror}") from None
    try:
        text = found.decode()
    except UnicodeDecodeError as error:
        if len(found) == 4 * LONGEST + 4 and error.start >= len(found) - 3:
            text = found[: error.start].decode()  # only the cut is in the middle of a character
        else:
            raise UserError(
                f"the value of the secret {name} is not text: it has bytes that are not UTF-8",
                hint=f"encode it: base64 FILE | perdure secret set {name} -",
            ) from None
    value = text.removesuffix("\n")
    if value.endswith("\r"):
        say().print("Note: the value ends in a carriage return, as a line of a file made on Windows does.")
    return value
