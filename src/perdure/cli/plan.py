"""What a plan looks like."""

from __future__ import annotations

from itertools import zip_longest

from rich.table import Table
from rich.text import Text

from perdure.cli.flags import Given
from perdure.cli.tables import failure_table, offer_table
from perdure.cli.terminal import say
from perdure.cli.words import price
from perdure.model.api import Plan
from perdure.model.origins import EffectiveValue
from perdure.spec.shown import brief

OFFERS_SHOWN = 3

TOLD_BY_CODE = ("files", "repos")
"""Fields of which ``code`` says more: how many files go along, and how large they are."""

WIDE = 96
"""Columns of a terminal that two columns of values fit on, each value of at most ``SHORT`` characters."""

SHORT = 30


def show_plan(
    plan: Plan,
    project: str,
    user: str,
    code: list[tuple[str, str]],
    *,
    flags: Given | None = None,
    offers: int = OFFERS_SHOWN,
) -> None:
    """What somebody should know before saying yes, what goes along, then ``offers`` of the offers, or why there are
    none. ``flags``: to call them as they were given."""
    values = [one for one in brief(plan.effective) if one.path not in TOLD_BY_CODE]
    given = {one.label.lower() for one in values}
    ours = [("Run", plan.name), ("Project", project), ("User", user)]
    shown = [(name, value) for name, value in ours if name.lower() not in given]
    _show_values([*shown, *((one.label, _told(one, flags or Given())) for one in values), *_times(plan), *code])
    if more := len(plan.effective) - len(values):
        fields = "field is" if more == 1 else "fields are"
        say().print(f"  {more} more {fields} at the default: --explain shows all, and what sets each", style="dim")
    say().print()
    if plan.offers:
        say().print(offer_table(plan.offers[:offers]))
        say().print(_counted(plan, offers), style="dim")
    else:
        say().print("No offers.", style="bold yellow")
    if plan.short_of or not plan.offers:
        _show_shortage(plan)
    for warning in plan.warnings:
        say().print(Text("Warning: ", style="yellow") + Text(warning))
    say().print()


def _times(plan: Plan) -> list[tuple[str, str]]:
    if plan.upcoming is None:
        return []
    return [("Next times", "\n".join(plan.upcoming) or "none")]


def _told(value: EffectiveValue, flags: Given) -> str:
    """With what says so, unless it is the configuration or nobody."""
    match value.origin.layer:
        case "configuration" | "default":
            return value.value
        case "flag":
            return f"{value.value} ({flags.flag_of(value.origin.path) or value.origin.words()})"
        case _:
            return f"{value.value} ({value.origin.words()})"


def _show_shortage(plan: Plan) -> None:
    if plan.nodes > 1 and plan.offers:
        say().print(f"Only {plan.nodes - plan.short_of} of its {plan.nodes} nodes could start now.", style="yellow")
    if plan.failures:
        say().print(failure_table(plan.failures))
    elif not plan.offers:
        say().print("  There is no fleet to run it on; `perdure fleet` shows what there is.", style="dim")


def _show_values(values: list[tuple[str, str]]) -> None:
    """Short ones side by side where the terminal is wide enough, and in order down the columns."""
    wide = say().width >= WIDE
    short = [one for one in values if wide and len(one[1]) <= SHORT]
    half = (len(short) + 1) // 2
    grid = Table.grid(padding=(0, 2))
    for _ in range(2 if wide else 1):
        grid.add_column(style="bold", no_wrap=True)
        grid.add_column(overflow="fold", min_width=SHORT if wide else None)
    for left, right in zip_longest(short[:half], short[half:], fillvalue=("", "")):
        grid.add_row(*_cells(*left), *_cells(*right))
    say().print(grid)
    rest = Table.grid(padding=(0, 2))
    rest.add_column(style="bold", no_wrap=True)
    rest.add_column(overflow="fold")
    for name, value in values:
        if (name, value) not in short:
            rest.add_row(*_cells(name, value))
    say().print(rest)


def _cells(name: str, value: str) -> tuple[Text, Text]:
    return Text(name[:1].upper() + name[1:]), Text(value)


def _counted(plan: Plan, most: int) -> str:
    total = max(plan.total_offers, len(plan.offers))
    shown = min(len(plan.offers), most)
    dearest = max(planned.offer.price for planned in plan.offers) * plan.nodes
    each = f", for {plan.nodes} nodes" if plan.nodes > 1 else ""
    at_most = f"; at most {price(dearest)} an hour in all" if dearest else ""
    return f"  {shown} of {total} shown{each}{at_most}"
