"""What would happen, and what could be had: answers that change nothing."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from temporalio import activity

from activities.errors import translated
from activities.placement import offered
from activities.world import World
from perdure.core.allocation import Wish
from perdure.core.choices import Choice, choices, failures, placeable
from perdure.core.slots import upcoming
from perdure.model.api import LIST_OFFERS, PLAN, OfferQuery, OfferRows, Plan, PlannedOffer, PlanRequest
from perdure.model.errors import InvalidConfiguration
from perdure.model.origins import EffectiveValue
from perdure.model.resources import Offer, OfferFailure, Requirements
from perdure.spec import offer_requirements, parse_fleet, resolve
from perdure.spec.effective import EffectiveRun
from perdure.spec.fleet_layer import under_fleet
from perdure.spec.reading import read
from perdure.store import plans, secrets

NOBODY = UUID(int=0)
"""Stands for the run that would be, and its claim."""

UNNAMED = "unnamed"
"""Stands for the name of a run that has none yet."""


class Planning:
    def __init__(self, world: World):
        self.world = world

    @activity.defn(name=PLAN.name)
    @translated
    async def plan(self, request: PlanRequest) -> Plan:
        """Every effective value, what it would run on, what would not do and why, and the run that has its name.

        Mistakes in the configuration are ``errors`` of the plan.
        """
        name = str(request.configuration.get("name") or UNNAMED)
        kind = str(request.configuration.get("type", ""))
        async with self.world.database.transaction() as tx:
            names = await secrets.names(tx, request.project)
        try:
            run = self._resolved(request, name, names)
        except InvalidConfiguration as error:
            return Plan(name=name, kind=kind, errors=tuple(error.errors))
        policy = run.policy
        found, placed, tried = await self._choices(request.project, policy.requirements, policy.nodes)
        async with self.world.database.transaction() as tx:
            active = await plans.active_run(tx, request.project, name)
            fleet = await plans.fleet_configuration(tx, found[0].fleet.id) if found else None
        return Plan(
            name=name,
            kind=policy.kind,
            effective=_on_fleet(run, fleet, found[0].fleet.name) if fleet else run.values,
            requirements=policy.requirements,
            nodes=policy.nodes,
            offers=_planned(found[: request.max_offers]),
            total_offers=len(found),
            short_of=policy.nodes - placed,
            failures=tried,
            active=active,
            upcoming=upcoming(policy.schedule, datetime.now(UTC)) if policy.schedule else None,
            warnings=read(request.configuration, flags=request.flags, profile=request.profile).warnings,
        )

    @activity.defn(name=LIST_OFFERS.name)
    @translated
    async def list_offers(self, query: OfferQuery) -> OfferRows:
        """All that would do for one node with these requirements, and why the rest would not.

        Raises:
            InvalidConfiguration
        """
        stand_in = {"type": "task", "commands": ["true"], **query.requirements}
        self._resolved(PlanRequest(project=query.project, configuration=stand_in), UNNAMED)
        found, _, tried = await self._choices(query.project, offer_requirements(query.requirements), 1)
        return OfferRows(offers=_planned(found[: query.max_offers]), total=len(found), failures=tried)

    def _resolved(self, request: PlanRequest, name: str, names: set[str] | None = None) -> EffectiveRun:
        """``names``: of the project's secrets.

        Raises:
            InvalidConfiguration
        """
        return resolve(
            request.configuration,
            flags=request.flags,
            profile=request.profile,
            run_id=NOBODY,
            project=request.project,
            name=name,
            user=request.user,
            submitted_at=datetime.now(UTC),
            sealed=dict.fromkeys(request.have_env, ""),
            arguments=request.arguments,
            secrets=names,
            timing=self.world.timing,
        )

    async def _choices(
        self, project: str, requirements: Requirements, nodes: int
    ) -> tuple[list[Choice], int, tuple[OfferFailure, ...]]:
        """What would do, how many nodes could be placed now, and what does not do."""
        wish = Wish(NOBODY, nodes, requirements, shape="plan")
        async with self.world.database.transaction() as tx:
            pool = await plans.project_pool(tx, project, self._offers)
        return choices(pool, wish), placeable(pool, wish), failures(pool, wish)

    def _offers(self, requirements: Requirements) -> Iterable[Offer]:
        return offered(self.world, requirements)


def _on_fleet(run: EffectiveRun, fleet: dict[str, Any], name: str) -> tuple[EffectiveValue, ...]:
    """What is in force on the fleet that would be taken first; one that cannot be read any more adds nothing."""
    try:
        return under_fleet(run.values, parse_fleet(fleet), name)
    except InvalidConfiguration:
        return run.values


def _planned(found: Iterable[Choice]) -> tuple[PlannedOffer, ...]:
    return tuple(
        PlannedOffer(
            fleet=choice.fleet.name,
            instance=choice.instance.name if choice.instance else None,
            offer=choice.offer,
            availability=choice.availability,
        )
        for choice in found
    )
