"""``perdure secret``: what its commands are called and take."""

from __future__ import annotations

from typing import Annotated

import typer

from perdure.cli import completion
from perdure.cli.groups import alone
from perdure.cli.run_commands import Json, Project, Yes

app = typer.Typer(
    help="Keep passwords and keys for runs, under names: set, get, list or delete one.",
    epilog="In a configuration: env: {HF_TOKEN: '${{ secrets.hf-token }}'}",
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The secret's name.", autocompletion=completion.secrets)]


@app.callback(invoke_without_command=True)
def secret(context: typer.Context, project: Project = "main", json: Json = False) -> None:
    """Keep passwords and keys for runs, under names: set, get, list or delete one."""
    if alone(context):
        list_secrets(project, json=json)


@app.command("set", epilog="perdure secret set hf-token - < token.txt")
def set_secret(
    name: Name,
    value: Annotated[
        str | None,
        typer.Argument(
            metavar="[VALUE|-]",
            help="Its value; `-` reads it from stdin, less a last line's end. Without one you are asked for it.",
            show_default=False,
        ),
    ] = None,
    project: Project = "main",
    json: Json = False,
) -> None:
    """Give a secret a value, or another one than before. Jobs that start from now on get it.

    A value that is written here stays in this shell's history; one that is asked for, or piped in, does not.
    """
    from perdure.cli.secrets import give

    give(project, name, value, json=json)


@app.command("get", epilog="perdure secret get deploy-key > key.pem")
def get_secret(name: Name, project: Project = "main", json: Json = False) -> None:
    """Print a secret's value, in the clear, and the end of a line."""
    from perdure.cli.secrets import show

    show(project, name, json=json)


@app.command("list")
def list_secrets(project: Project = "main", json: Json = False) -> None:
    """List secrets, and who set them when. No values. So does `perdure secret` alone."""
    from perdure.cli.secrets import show_all

    show_all(project, json=json)


@app.command("delete", epilog="perdure secret delete hf-token -y")
def delete_secret(name: Name, yes: Yes = False, project: Project = "main") -> None:
    """Forget a secret. Jobs that need it and have not started yet will fail, saying so."""
    from perdure.cli.secrets import delete

    delete(project, name, yes=yes)
