"""The commands about runs: what they are called, what they take. What they do is imported when one is used."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from perdure.cli import completion
from perdure.cli.flags import RUN_FLAGS, Given, taking


def _project(name: str) -> str:
    """
    Raises:
        UserError: it is not the name of a project.
    """
    from perdure.model.ids import check_project_name

    check_project_name(name)
    return name


Project = Annotated[
    str,
    typer.Option(
        "--project",
        callback=_project,
        envvar="PERDURE_PROJECT",
        help="The project whose runs and fleets are meant.",
        show_default=True,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

Profile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="What stands below the configuration; without it $PERDURE_PROFILE, or the default profile.",
        rich_help_panel="Profiles, of .perdure/profiles.yml here or at home",
        autocompletion=completion.profiles,
    ),
]
NoProfile = Annotated[
    bool,
    typer.Option(
        "--no-profile",
        help="Nothing stands below it.",
        rich_help_panel="Profiles, of .perdure/profiles.yml here or at home",
    ),
]

RunName = Annotated[str, typer.Argument(metavar="NAME", help="The run's name.", autocompletion=completion.runs)]

LivingRun = Annotated[
    str, typer.Argument(metavar="NAME", help="The run's name.", autocompletion=completion.living_runs)
]

run_app = typer.Typer(
    help="Show one run in full, or see to its schedule.", epilog="perdure run get train", no_args_is_help=True
)


class _KeepsDashes(TyperCommand):
    """Tells ``apply FILE``, which is a mistake, from ``apply -- ARGUMENTS``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta["dashes"] = "--" in args
        return super().parse_args(ctx, args)


def register(app: typer.Typer) -> None:
    app.command(
        cls=_KeepsDashes,
        epilog="perdure apply -f train.yml -e HF_TOKEN -- --epochs 3",
        context_settings={"allow_interspersed_args": True},
    )(apply)
    app.command(epilog="perdure ps -a --json | jq '.runs[].name'")(ps)
    app.command(epilog="perdure logs train -f")(logs)
    app.command(epilog="perdure stop train --abort")(stop)
    run_app.command("get", epilog="perdure run get train --json")(run_get)
    for command in (run_trigger, run_pause, run_resume):
        name = command.__name__.removeprefix("run_")
        run_app.command(name, epilog=f"perdure run {name} nightly")(command)
    app.add_typer(run_app, name="run")


@taking(*RUN_FLAGS)
def apply(
    context: typer.Context,
    arguments: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- ARGUMENTS", help="What ${{ run.args }} stands for, after `--`."),
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(
            "--file", "-f", metavar="FILE", help="The configuration; `-` is stdin. By default .perdure.yml here."
        ),
    ] = None,
    yes: Yes = False,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Submit, and do not wait for it.")] = False,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            "-e",
            metavar="NAME[=VALUE]",
            help="Set a variable, or pass on its value from here; it is sent encrypted.",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="If a run of this name is still going, stop it first.")
    ] = False,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Only show every value in force, and what line, flag or default it is from."
        ),
    ] = False,
    offers: Annotated[
        int, typer.Option("--max-offers", metavar="NUMBER", min=1, max=1000, help="How many the plan shows.")
    ] = 3,
    project: Project = "main",
    json: Annotated[
        bool,
        typer.Option("--json", help="Print the run as one JSON document: with -d as it begins, else as it ended."),
    ] = False,
    profile: Profile = None,
    no_profile: NoProfile = False,
    *,
    flags: Given,
) -> None:
    """Plan, confirm and submit a configuration, then follow it to its end.

    Flags stand above the configuration, a profile below it.

    The exit code of an attached run is 0 only if it ended done.
    """
    from perdure.cli.apply import ApplyOptions, apply_file

    if arguments and not context.meta.get("dashes"):
        raise typer.BadParameter(f"unexpected {arguments[0]!r}: a file is given with -f, arguments after --")
    one_profile(profile, no_profile)
    options = ApplyOptions(
        file=file,
        yes=yes,
        detach=detach,
        env=tuple(env or ()),
        force=force,
        explain=explain,
        offers=offers,
        json=json,
        project=project,
        arguments=tuple(arguments or ()),
        flags=flags,
        profile=profile,
        no_profile=no_profile,
    )
    raise typer.Exit(apply_file(options))


def one_profile(profile: str | None, no_profile: bool) -> None:
    """
    Raises:
        typer.BadParameter: it is asked for and not wanted.
    """
    if profile is not None and no_profile:
        raise typer.BadParameter("--profile and --no-profile cannot be given together")


def ps(
    all: Annotated[bool, typer.Option("--all", "-a", help="Also those that have ended.")] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Keep showing them.")] = False,
    number: Annotated[
        int | None, typer.Option("--number", "-n", min=1, max=1000, help="How many; implies -a.")
    ] = None,
    project: Project = "main",
    json: Json = False,
) -> None:
    """List runs: those that have not ended, or else the last one."""
    from perdure.cli.ps import show

    show(project, all=all, watch=watch, number=number, json=json)


def logs(
    name: RunName,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the run ends.")] = False,
    replica: Annotated[int, typer.Option(min=0, help="Which replica.")] = 0,
    job: Annotated[int, typer.Option(min=0, help="Which of its jobs (nodes).")] = 0,
    attempt: Annotated[int | None, typer.Option(min=0, help="Which attempt, from 0; by default the last.")] = None,
    project: Project = "main",
) -> None:
    """Print what a job printed, byte for byte."""
    from perdure.cli.logs import show

    show(project, name, follow=follow, slot=(replica, job), attempt=attempt)


def stop(
    name: LivingRun,
    abort: Annotated[bool, typer.Option("--abort", "-x", help="At once, without a chance to save.")] = False,
    occurrence: Annotated[
        bool, typer.Option("--occurrence", help="Only what runs now of a schedule; the schedule goes on.")
    ] = False,
    yes: Yes = False,
    project: Project = "main",
) -> None:
    """Stop a run gracefully, its schedule too, and wait until it has ended."""
    from perdure.cli.schedule import stop_occurrence
    from perdure.cli.stop import stop as do

    if occurrence:
        raise typer.Exit(stop_occurrence(project, name, abort=abort, yes=yes))
    raise typer.Exit(do(project, name, abort=abort, yes=yes))


def run_get(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The run's name.", autocompletion=completion.runs)
    ] = None,
    id: Annotated[str | None, typer.Option("--id", help="Its UUID, instead of a name.")] = None,
    json: Json = False,
    project: Project = "main",
) -> None:
    """Show one run: its configuration, and every attempt of its jobs."""
    from perdure.cli.run_get import show

    if (name is None) == (id is None):
        raise typer.BadParameter("give either a name or --id")
    show(project, name, id, json=json)


def run_trigger(name: LivingRun, project: Project = "main") -> None:
    """Begin an occurrence of a schedule now, also of one that is paused."""
    from perdure.cli.schedule import trigger

    trigger(project, name)


def run_pause(name: LivingRun, project: Project = "main") -> None:
    """Pause a schedule: no time of it begins an occurrence. What runs goes on."""
    from perdure.cli.schedule import pause

    pause(project, name)


def run_resume(name: LivingRun, project: Project = "main") -> None:
    """Go on with a schedule that is paused. What it missed is not made up for."""
    from perdure.cli.schedule import resume

    resume(project, name)
