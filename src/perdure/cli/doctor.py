"""``perdure doctor``."""

from __future__ import annotations

from perdure.cli.session import with_client
from perdure.cli.terminal import out, print_json
from perdure.client.client import PerdureClient
from perdure.model.api import Check, Checks


def examine(*, json: bool) -> int:
    """Every invariant, and what breaks it. The exit code: 1 if any is broken."""

    async def work(client: PerdureClient) -> tuple[Check, ...]:
        return await client.doctor()

    checks = with_client(work)
    if json:
        print_json(Checks(checks=checks))
    else:
        for check in checks:
            out().print("[green]✓[/]" if check.ok else "[bold red]✗[/]", end=" ")
            out().print(check.invariant, markup=False)
            for finding in check.findings:
                out().print(f"    {finding}", markup=False)
        out().print(_summary(sum(not check.ok for check in checks)))
    return 0 if all(check.ok for check in checks) else 1


def _summary(broken: int) -> str:
    match broken:
        case 0:
            return "All invariants hold."
        case 1:
            return "1 invariant is broken."
        case _:
            return f"{broken} invariants are broken."
