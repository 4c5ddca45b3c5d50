"""What a plan looks like."""

from __future__ import annotations

from rich.table import Table
from rich.text import Text

from perdure.cli.tables import failure_table, offer_table
from perdure.cli.terminal import say
from perdure.cli.words import price
from perdure.model.api import Plan

OFFERS_SHOWN = 3


def show_plan(plan: Plan, project: str, user: str, code: list[tuple[str, str]]) -> None:
    """Every value in force, what goes along, then the offers, or why there are none."""
    values = Table.grid(padding=(0, 2))
    values.add_column(style="bold", no_wrap=True)
    values.add_column(overflow="fold")
    given = {name.lower() for name, _ in plan.effective}
    ours = [("Run", plan.name), ("Project", project), ("User", user)]
    shown = [(name, value) for name, value in ours if name.lower() not in given]
    for name, value in [*shown, *plan.effective, *code]:
        values.add_row(Text(name[:1].upper() + name[1:]), Text(value))
    say().print(values)
    say().print()
    if plan.offers:
        say().print(offer_table(plan.offers[:OFFERS_SHOWN]))
        say().print(_counted(plan), style="dim")
    else:
        say().print("No offers.", style="bold yellow")
        if plan.failures:
            say().print(failure_table(plan.failures))
        else:
            say().print("  There is no fleet to run it on; `perdure fleet` shows what there is.", style="dim")
    for warning in plan.warnings:
        say().print(Text("Warning: ", style="yellow") + Text(warning))
    say().print()


def _counted(plan: Plan) -> str:
    total = max(plan.total_offers, len(plan.offers))
    shown = min(len(plan.offers), OFFERS_SHOWN)
    dearest = max(planned.offer.price for planned in plan.offers)
    each = f", for each of {plan.nodes} nodes" if plan.nodes > 1 else ""
    most = f"; at most {price(dearest)} an hour" if dearest else ""
    return f"  {shown} of {total} shown{each}{most}"
