"""``perdure fleet``: what its commands are called and take."""

from __future__ import annotations

from typing import Annotated

import typer

from perdure.cli import completion
from perdure.cli.groups import alone
from perdure.cli.run_commands import Json, Project, Yes

app = typer.Typer(
    help="List fleets and their instances; show or delete one.",
    epilog="perdure apply -f fleet.yml makes or changes one",
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The fleet's name.", autocompletion=completion.fleets)]


@app.callback(invoke_without_command=True)
def fleet(context: typer.Context, project: Project = "main", json: Json = False) -> None:
    """List fleets and their instances; show or delete one."""
    if alone(context):
        list_fleets(project, json=json)


@app.command("list")
def list_fleets(project: Project = "main", json: Json = False) -> None:
    """List fleets and their instances; so does `perdure fleet` alone."""
    from perdure.cli.fleets import show

    show(project, None, json=json)


@app.command("get")
def get_fleet(name: Name, project: Project = "main", json: Json = False) -> None:
    """Show one fleet and its instances."""
    from perdure.cli.fleets import show

    show(project, name, json=json)


@app.command("delete", epilog="perdure fleet delete pool -y")
def delete_fleet(name: Name, yes: Yes = False, project: Project = "main") -> None:
    """Delete a fleet, and wait until it is gone.

    It takes no new runs from then on. Idle instances go at once, busy ones when their run lets go of them.
    """
    from perdure.cli.fleets import delete

    raise typer.Exit(delete(project, name, yes=yes))
