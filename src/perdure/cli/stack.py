"""The commands of the embedded stack: up, down, status, env. What they do is imported when one is used."""

from __future__ import annotations

from typing import Annotated

import typer


def up(
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Go on in the background once it is up.")] = False,
    durable: Annotated[
        bool, typer.Option("--durable", help="Lose nothing in a power cut either: every step waits for the disk.")
    ] = False,
    database_url: Annotated[
        str | None,
        typer.Option(help="A Postgres of yours, from now on; `embedded` goes back to the one that comes along."),
    ] = None,
    local_fleet: Annotated[
        bool, typer.Option(help="See that this machine can be used, as the fleet `local` of project `main`.")
    ] = True,
) -> None:
    """Start Temporal, Postgres and a worker on this machine, and keep them alive."""
    from perdure.stack import control, report
    from perdure.stack.home import Home
    from perdure.stack.supervisor import Options

    home = Home.find()
    options = Options(durable=durable, database_url=database_url, local_fleet=local_fleet)
    start = control.up_detached if detach else control.up
    if not start(home, options, typer.echo):
        typer.echo(f"Perdure is already up ({home.path}).")
        for line in report.describe(home):
            typer.echo(line)


def down(
    everything: Annotated[
        bool, typer.Option("--all", help="Stop every run first, and this machine's agents with it.")
    ] = False,
    delete_state: Annotated[
        bool,
        typer.Option("--delete-state", help="With --all: remove all that was kept, logs and history included."),
    ] = False,
) -> None:
    """Stop what `perdure up` started. Jobs go on running, and are found again by the next `perdure up`."""
    from perdure.stack import control
    from perdure.stack.home import Home

    home = Home.find()
    existed = home.path.exists()
    was_up = control.down(home, typer.echo, everything=everything, delete_state=delete_state)
    typer.echo("Perdure is down." if was_up else f"Perdure was not up ({home.path}).")
    if delete_state and existed:
        typer.echo(f"Nothing of {home.path} is left.")


def status() -> None:
    """One line for each part: what it is, where, and since when."""
    from perdure.stack import report
    from perdure.stack.home import Home, StackError

    home = Home.find()
    lines = report.describe(home)
    if not lines and home.running() is not None:
        raise StackError(
            f"the `perdure up` of {home.path} was killed; what it started goes on",
            hint="`perdure up` takes it over, `perdure down` stops it",
        )
    if not lines:
        raise StackError(f"Perdure is not up ({home.path})", hint="start it with: perdure up --detach")
    for line in lines:
        typer.echo(line)


def env() -> None:
    """Print what other Temporal tools need: eval "$(perdure env)"."""
    import shlex

    from perdure.stack import control
    from perdure.stack.home import Home

    for name, value in control.exports(Home.find()).items():
        typer.echo(f"export {name}={shlex.quote(value)}")
