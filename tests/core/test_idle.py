"""How long an instance stays when nobody uses it: what the run or the fleet says."""

from __future__ import annotations

from uuid import uuid4

import pytest

from perdure.core.allocation import FleetRoom, Wish, idle_duration
from perdure.model.resources import Requirements

SAYS = Requirements(firm=("idle_duration",))
SILENT = Requirements()


def wish(requirements: Requirements, seconds: float | None) -> Wish:
    return Wish(uuid4(), 1, requirements, "x", idle_duration=seconds)


def fleet(requirements: Requirements, seconds: float | None) -> FleetRoom:
    return FleetRoom(
        id=uuid4(),
        name="f",
        active=True,
        nodes_max=None,
        cluster=False,
        blocks=1,
        requirements=requirements,
        idle_duration=seconds,
        living=0,
        nums=set(),
    )


@pytest.mark.parametrize(
    ("run", "pool", "seconds"),
    [
        ((SILENT, 300), (SILENT, 259_200), 300),
        ((SILENT, 300), (SAYS, 3600), 3600),
        ((SILENT, 300), (SAYS, None), None),
        ((SAYS, 3600), (SILENT, 259_200), 3600),
        ((SAYS, None), (SILENT, 259_200), None),
        ((SAYS, 3600), (SAYS, 600), 600),
        ((SAYS, 600), (SAYS, 3600), 600),
        ((SAYS, None), (SAYS, 3600), 3600),
        ((SAYS, None), (SAYS, None), None),
    ],
)
def test_the_shorter_holds_of_those_that_are_said(
    run: tuple[Requirements, float | None], pool: tuple[Requirements, float | None], seconds: float | None
) -> None:
    assert idle_duration(wish(*run), fleet(*pool)) == seconds
