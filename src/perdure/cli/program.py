"""The program: its commands, and what becomes of an error that none of them handled."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Annotated

import typer

from perdure.cli import commands, run_commands, streams

app = typer.Typer(
    name="perdure",
    help="Runs GPU workloads that outlive the machines they run on.",
    epilog="Begin with: perdure up --detach, then perdure apply -f examples/hello/.perdure.yml",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
run_commands.register(app)
commands.register(app)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"perdure {version('perdure')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", "-v", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", envvar="PERDURE_DEBUG", help="Show the traceback of an error.")
    ] = False,
) -> None:
    if debug:
        os.environ["PERDURE_DEBUG"] = "1"


def run(arguments: list[str]) -> int:
    """Run one command; its exit code."""
    try:
        app(arguments, prog_name="perdure")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    except KeyboardInterrupt:
        return 130
    except Exception as error:  # noqa: BLE001 - the last handler
        if not (isinstance(error, OSError) and streams.loss()):  # ``finish`` tells of that
            _tell(error, arguments)
        return 1
    return 0


def finish(code: int) -> int:
    """The exit code, 1 if not all that was to be written to stdout could be."""
    from perdure.model.errors import UserError

    why = streams.loss()
    if why is None:
        return code
    _tell(UserError(f"the output cannot be written: {why}"), [])
    return code or 1


def _tell(error: Exception, arguments: list[str]) -> None:
    """In a sentence, if stderr takes one."""
    with suppress(OSError):
        _show(error, arguments)


def _show(error: Exception, arguments: list[str]) -> None:
    """Whoever used the command sees a sentence, never a traceback, unless they ask for it."""
    from perdure.cli.errors import show_error
    from perdure.cli.terminal import say
    from perdure.model.errors import PerdureError

    if _debugging():
        say().print_exception()
    if isinstance(error, PerdureError):
        show_error(error)
    elif isinstance(error, ValueError) and (bad := _not_text(arguments)) is not None:
        show_error(PerdureError(f"{bad} on the command line is not text: it has bytes that are not UTF-8"))
    else:
        fault = PerdureError(
            f"this is a fault of Perdure's: {type(error).__name__}: {error}",
            hint="PERDURE_DEBUG=1 shows where; please report it",
        )
        show_error(fault)


def _not_text(arguments: list[str]) -> str | None:
    """An argument that can be written to no message, as it can be shown."""
    from perdure.cli.documents import printable

    return next((shown for argument in arguments if (shown := printable(argument)) != argument), None)


def _debugging() -> bool:
    return os.environ.get("PERDURE_DEBUG", "") not in ("", "0", "false")
