"""Flags that stand above a configuration: one table, by which they are declared, read, and named in messages.

``--gpu A100`` says what ``resources: {gpu: A100}`` would say, so a flag is a place in the configuration, and its
value is read by that field's own grammar.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from perdure.cli import completion


@dataclass(frozen=True)
class Flag:
    """One flag, and what it writes where."""

    name: str
    path: str
    """Of the field in a configuration: ``resources.gpu``."""

    help: str
    metavar: str | None = None
    short: str | None = None
    many: bool = False
    """Given once for each item of a list."""

    switch: object = None
    """What it writes, if it takes no value."""

    read: Callable[[Any], object] | None = None
    """Makes of the value what it writes, if that is not the value itself."""

    complete: Callable[[typer.Context, str], list[str]] | None = None
    panel: str | None = None
    """Under which heading ``--help`` shows it; None: with the command's own options."""

    @property
    def parameter(self) -> str:
        return self.name.strip("-").replace("-", "_")

    def written(self, value: Any) -> object:
        """What it writes, given this value."""
        if self.switch is not None:
            return self.switch
        return value if self.read is None else self.read(value)

    def declared(self) -> inspect.Parameter:
        """As Typer wants it: an argument of the command's function."""
        kind: Any = bool if self.switch is not None else (list[str] if self.many else str) | None
        option = typer.Option(
            *filter(None, (self.name, self.short)),
            help=self.help,
            metavar=self.metavar,
            rich_help_panel=self.panel,
            autocompletion=self.complete,
        )
        return inspect.Parameter(
            self.parameter,
            inspect.Parameter.KEYWORD_ONLY,
            default=None if self.switch is None else False,
            annotation=Annotated[kind, option],
        )


@dataclass(frozen=True)
class Given:
    """What the flags of one command line say."""

    mapping: dict[str, Any] = field(default_factory=dict[str, Any])
    """A part of a configuration."""

    names: dict[str, str] = field(default_factory=dict[str, str])
    """The flag that wrote the field at a path."""

    def flag_of(self, path: str) -> str | None:
        """The flag that wrote the field at ``path``, or the one that holds it (``backends[1]``)."""
        return next((name for outer, name in self.names.items() if _inside(path, outer)), None)


def _repo(path: str) -> list[str]:
    """A folder is meant from here, not from where the configuration is."""
    return [path if "://" in path or path.startswith("git@") else str(Path(path).expanduser().absolute())]


def _panel(title: str, *flags: Flag) -> tuple[Flag, ...]:
    return tuple(replace(flag, panel=title) for flag in flags)


HARDWARE = _panel(
    "What each node needs",
    Flag("--gpu", "resources.gpu", "A100, A100:2, 24GB.., nvidia:80GB:1..8", "GPU"),
    Flag("--cpu", "resources.cpu", "4, 4..8, arm:8..", "CPU"),
    Flag("--memory", "resources.memory", "16GB, 16GB..64GB", "SIZE"),
    Flag("--disk", "resources.disk", "100GB.., 1TB", "SIZE"),
)
PLACEMENT = _panel(
    "Where it may run",
    Flag("--fleet", "fleets", "Only on this fleet. Repeatable.", "NAME", many=True, complete=completion.fleets),
    Flag("--backend", "backends", "Only on this backend: local, aws, … Repeatable.", "NAME", "-b", many=True),
    Flag("--region", "regions", "Only in this region. Repeatable.", "NAME", "-r", many=True),
    Flag("--instance-type", "instance_types", "Only this type. Repeatable.", "NAME", many=True),
    Flag("--max-price", "max_price", "Dollars an hour for one instance: 2.5", "PRICE"),
    Flag("--spot", "spot_policy", "Only spot instances.", switch="spot"),
    Flag("--on-demand", "spot_policy", "Only on-demand instances.", switch="on-demand"),
    Flag("--spot-auto", "spot_policy", "Spot or on-demand.", switch="auto"),
    Flag(
        "--spot-policy",
        "spot_policy",
        "spot, on-demand, auto",
        "POLICY",
        complete=completion.words("spot", "on-demand", "auto"),
    ),
    Flag("--reuse", "creation_policy", "Only on instances that exist already.", None, "-R", switch="reuse"),
    Flag(
        "--creation-policy",
        "creation_policy",
        "reuse, reuse-or-create",
        "POLICY",
        complete=completion.words("reuse", "reuse-or-create"),
    ),
)
ENDURANCE = _panel(
    "How long, and how often",
    Flag("--max-duration", "max_duration", "Stop it after: 2h, 1d, off", "DURATION"),
    Flag("--idle-duration", "idle_duration", "Keep its instances unused for: 10m, off (for ever)", "DURATION"),
    Flag("--dont-destroy", "idle_duration", "Keep its instances for ever.", switch="off"),
    Flag("--retry", "retry", "Try again after any failure, for an hour.", switch=True),
    Flag("--no-retry", "retry", "Never try again.", switch=False),
    Flag("--retry-duration", "retry.duration", "Try again for: 1h, 2d", "DURATION"),
    Flag("--priority", "priority", "0 to 100: who waits with more is served first.", "NUMBER"),
)
CODE = _panel(
    "What goes along",
    Flag("--repo", "repos", "This folder with a Git repository, instead of `repos:`.", "PATH", "-P", read=_repo),
    Flag("--no-repo", "repos", "No repository.", switch=[]),
)
PORTS = _panel(
    "Where it may run",
    Flag(
        "--port",
        "ports",
        "8000, or 80:8000 (here:there, and not forwarded here yet). Repeatable.",
        "PORT",
        "-p",
        many=True,
    ),
)

NAME = Flag("--name", "name", "The run's name; by default the one in the file, or a new one.", "NAME", "-n")

RUN_FLAGS = (NAME, *HARDWARE, *PLACEMENT, *ENDURANCE, *PORTS, *CODE)
"""Of ``apply``."""

OFFER_FLAGS = (*HARDWARE, *PLACEMENT)
"""Of ``offer``."""


def taking(*flags: Flag) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorates a command: it takes these flags, and is called with what they say (``flags: Given``)."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def filled(**arguments: Any) -> None:
            values = [(flag, arguments.pop(flag.parameter)) for flag in flags]
            command(**arguments, flags=written((flag, value) for flag, value in values if _is_given(value)))

        own = inspect.signature(command, eval_str=True)
        kept = [one for one in own.parameters.values() if one.name != "flags"]
        parameters = [*kept, *(flag.declared() for flag in flags)]
        filled.__dict__["__signature__"] = own.replace(parameters=parameters)
        filled.__annotations__ = {one.name: one.annotation for one in parameters}
        return filled

    return decorate


def written(given: Iterable[tuple[Flag, Any]]) -> Given:
    """What these flags say, each with its value.

    Raises:
        typer.BadParameter: two of them answer one question.
    """
    found = Given()
    for flag, value in given:
        for path, other in found.names.items():
            if _inside(flag.path, path) or _inside(path, flag.path):
                raise typer.BadParameter(f"{other} and {flag.name} cannot be given together")
        found.names[flag.path] = flag.name
        *outer, last = flag.path.split(".")
        inner = found.mapping
        for step in outer:
            inner = inner.setdefault(step, {})
        inner[last] = flag.written(value)
    return found


def _is_given(value: object) -> bool:
    """An empty text is given: its field says what is wrong with it."""
    return value is not None and value is not False and value != []


def _inside(path: str, outer: str) -> bool:
    return re.match(rf"{re.escape(outer)}($|[.\[])", path) is not None
