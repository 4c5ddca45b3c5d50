"""``perdure event``: what it is called and takes."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from perdure.cli import completion
from perdure.cli.run_commands import Project


class _Lists(TyperGroup):
    """``perdure event -w`` is ``perdure event list -w``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not args or args[0] not in self.commands:
            args = ["list", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=_Lists,
    help="List what changed, when, and who or what did it; so does `perdure event` alone.",
    epilog="perdure event -w --within-run train",
)

ONE_OF = "What they are about: one of these"


def _about(option: str, what: str, complete: Any) -> Any:
    return typer.Option(option, metavar="NAME", help=what, rich_help_panel=ONE_OF, autocompletion=complete)


@app.callback()
def event() -> None:
    """List what changed, when, and who or what did it; so does `perdure event` alone."""


@app.command("list", epilog="perdure event --since 1h --within-fleet pool --json | jq '.events[].message'")
def list_events(
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on, and print each as it comes.")] = False,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="Only later ones: 10m (ago), or 2026-12-31T18:00:00Z."),
    ] = None,
    number: Annotated[
        int, typer.Option("--number", "-n", metavar="NUMBER", min=1, max=1000, help="How many of the latest.")
    ] = 100,
    target_run: Annotated[
        str | None, _about("--target-run", "A run itself, and all before it of that name.", completion.runs)
    ] = None,
    target_fleet: Annotated[str | None, _about("--target-fleet", "A fleet itself.", completion.fleets)] = None,
    target_instance: Annotated[
        str | None, _about("--target-instance", "An instance, and the jobs on it.", None)
    ] = None,
    target_secret: Annotated[str | None, _about("--target-secret", "A secret.", completion.secrets)] = None,
    within_run: Annotated[
        str | None, _about("--within-run", "A run, its jobs and its claims of capacity.", completion.runs)
    ] = None,
    within_fleet: Annotated[
        str | None, _about("--within-fleet", "A fleet and its instances.", completion.fleets)
    ] = None,
    project: Project = "main",
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document; with -w, one a line for each event.")
    ] = False,
) -> None:
    """List the latest events, oldest first."""
    from perdure.cli.event import show

    about = {
        "target-run": target_run,
        "target-fleet": target_fleet,
        "target-instance": target_instance,
        "target-secret": target_secret,
        "within-run": within_run,
        "within-fleet": within_fleet,
    }
    given = [(option, name) for option, name in about.items() if name is not None]
    if len(given) > 1:
        raise typer.BadParameter(f"--{given[0][0]} and --{given[1][0]} cannot be given together")
    show(project, given[0] if given else None, since=since, limit=number, watch=watch, json=json)
