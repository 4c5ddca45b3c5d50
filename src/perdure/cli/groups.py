"""What the commands that list by themselves, and have others beneath them, have in common."""

from __future__ import annotations

import typer


def alone(context: typer.Context) -> bool:
    """Whether such a command is used by itself. Its own options in front of another command would be those of
    nobody, and a value would go to another project unnoticed: they are refused.

    Raises:
        typer.Exit: by way of a usage error.
    """
    if context.invoked_subcommand is None:
        return True
    for option in context.params:
        source = context.get_parameter_source(option)
        if source is not None and source.name == "COMMANDLINE":
            context.fail(
                f"--{option} stands behind the command: {context.command_path} {context.invoked_subcommand} …"
                f" --{option}"
            )
    return False
