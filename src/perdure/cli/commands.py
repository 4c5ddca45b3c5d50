"""The other commands: the stack's, and what can be looked at besides runs."""

from __future__ import annotations

from typing import Annotated

import typer

from perdure.cli import event_commands, fleet_commands, secret_commands, stack
from perdure.cli.flags import OFFER_FLAGS, Given, taking
from perdure.cli.run_commands import Json, NoProfile, Profile, Project, RunName, one_profile


def register(app: typer.Typer) -> None:
    for command in (stack.up, stack.down, stack.status, stack.env):
        app.command(rich_help_panel="The embedded stack")(command)
    app.command(epilog="perdure offer --gpu A100:2 --spot-auto --max-price 3 --json")(offer)
    app.add_typer(fleet_commands.app, name="fleet")
    app.add_typer(secret_commands.app, name="secret")
    app.add_typer(event_commands.app, name="event")
    app.command(epilog="perdure explain train --json | jq -r .headline")(explain)
    app.command()(doctor)
    app.command(epilog="perdure schema > perdure.schema.json")(schema)
    app.command(epilog="perdure validate *.yml")(validate)


@taking(*OFFER_FLAGS)
def offer(
    resources: Annotated[
        str | None,
        typer.Option(metavar="YAML", help="What is asked for, as under `resources:`: 'cpu: 4, gpu: A100'."),
    ] = None,
    number: Annotated[int, typer.Option("--max-offers", "-n", min=1, max=1000, help="How many.")] = 50,
    project: Project = "main",
    json: Json = False,
    profile: Profile = None,
    no_profile: NoProfile = False,
    *,
    flags: Given,
) -> None:
    """List what could run a job, and why the rest could not."""
    from perdure.cli.offers import show_offers

    one_profile(profile, no_profile)
    raise typer.Exit(
        show_offers(project, resources, flags, number, profile=profile, no_profile=no_profile, json=json)
    )


def explain(name: RunName, project: Project = "main", json: Json = False) -> None:
    """Tell a run's story: each attempt, how long each phase took, why it ended, and what comes next."""
    from perdure.cli.explain_run import show

    show(project, name, json=json)


def doctor(json: Json = False) -> None:
    """Check that nothing is lost, leaked or held twice."""
    from perdure.cli.doctor import examine

    raise typer.Exit(examine(json=json))


def schema(
    kind: Annotated[str, typer.Argument(help="task, fleet, …; any is whatever a .perdure.yml may be.")] = "any",
) -> None:
    """Print the JSON schema of configurations, for an editor, or of what travels to Temporal."""
    from perdure.cli.schema import show

    show(kind)


def validate(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE…",
            help="Configurations of any kind, or files of profiles; `-` is stdin.",
            show_default=False,
        ),
    ],
    json: Json = False,
    profile: Profile = None,
    no_profile: NoProfile = False,
) -> None:
    """Check configurations without a server: every mistake, with its line.

    The exit code is that of the worst file: 0 it is valid, 1 it is not, 2 it cannot be read.
    """
    from perdure.cli.validate import validate_all

    one_profile(profile, no_profile)
    raise typer.Exit(validate_all(files, profile=profile, no_profile=no_profile, json=json))
