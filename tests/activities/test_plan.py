"""Plans and offers, over real rows and this machine's offer."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import uuid4

from activities.plan import Planning
from activities.runs import Runs
from perdure.model.api import OfferQuery, PlanRequest
from perdure.model.messages import ResolveRun
from tests.activities.bench import Bench

HELLO = {"type": "task", "name": "hello", "commands": ["echo hello"]}


async def test_a_plan_shows_the_offer_and_every_effective_value(bench: Bench) -> None:
    plan = await bench.call(Planning(bench.world).plan, PlanRequest(project="main", configuration=HELLO))
    assert plan.errors == ()
    assert [(offer.fleet, offer.instance, offer.availability) for offer in plan.offers] == [
        ("local", None, "available")
    ]
    assert plan.total_offers == 1
    assert plan.effective
    assert plan.active is None


async def test_a_plan_prefers_the_idle_instance(bench: Bench) -> None:
    await bench.instance()
    plan = await bench.call(Planning(bench.world).plan, PlanRequest(project="main", configuration=HELLO))
    assert (plan.offers[0].instance, plan.offers[0].availability) == ("local-0", "idle")


async def test_a_plan_names_the_run_that_has_its_name(bench: Bench) -> None:
    step = await bench.job(await bench.instance(), "true")
    name = (await bench.row(step)).effective.policy.name
    configuration = HELLO | {"name": name}
    plan = await bench.call(Planning(bench.world).plan, PlanRequest(project="main", configuration=configuration))
    assert plan.active is not None
    assert plan.active.run_id == step.key.run_id


async def test_a_plan_says_why_nothing_does(bench: Bench) -> None:
    greedy = HELLO | {"resources": {"cpu": "1000..", "gpu": "H100:8"}}
    plan = await bench.call(Planning(bench.world).plan, PlanRequest(project="main", configuration=greedy))
    assert plan.offers == ()
    assert any("CPUs" in failure.why for failure in plan.failures)


async def test_a_plan_lists_every_mistake(bench: Bench) -> None:
    wrong = {"type": "task", "name": "hello", "comands": ["x"], "nodes": "many"}
    plan = await bench.call(Planning(bench.world).plan, PlanRequest(project="main", configuration=wrong))
    assert {"comands", "nodes"} <= {error.path for error in plan.errors}


async def test_a_plan_warns_of_what_has_no_effect_yet(bench: Bench) -> None:
    mapped = HELLO | {"ports": ["9100:8000"], "home_dir": "/x"}
    plan = await bench.call(Planning(bench.world).plan, PlanRequest(project="main", configuration=mapped))
    assert plan.warnings[0] == "home_dir has no effect"
    assert "9100 is not forwarded" in plan.warnings[1]


async def test_sealed_names_count_as_given(bench: Bench) -> None:
    wants = HELLO | {"env": ["TOKEN"]}
    steps = Planning(bench.world)
    without = await bench.call(steps.plan, PlanRequest(project="main", configuration=wants))
    assert without.errors
    given = await bench.call(steps.plan, PlanRequest(project="main", configuration=wants, have_env=("TOKEN",)))
    assert given.errors == ()


async def test_a_plan_goes_by_flags_profile_and_fleet(bench: Bench) -> None:
    fleet = """{"type": "fleet", "nodes": "0..4", "idle_duration": "1h", "tags": {"team": "ml"}}"""
    await bench.execute("UPDATE fleets SET configuration = CAST(:fleet AS jsonb)", fleet=fleet)
    request = PlanRequest(
        project="main",
        configuration=HELLO,
        flags={"resources": {"cpu": "1.."}},
        profile={"name": "short", "max_duration": "1h"},
    )
    plan = await bench.call(Planning(bench.world).plan, request)
    assert plan.requirements.cpu.min == 1
    shown = {one.path: (one.value, one.origin.words()) for one in plan.effective}
    assert shown["resources.cpu"] == ("1..", "--cpu")
    assert shown["max_duration"] == ("1h", "profile short")
    assert shown["idle_duration"] == ("1h", "fleet local")
    assert shown["tags.team"] == ("ml", "fleet local")


async def test_a_plan_says_which_layer_a_mistake_is_in(bench: Bench) -> None:
    request = PlanRequest(project="main", configuration=HELLO, flags={"nodes": 0}, profile={"max_price": 0})
    plan = await bench.call(Planning(bench.world).plan, request)
    assert {(error.layer, error.path) for error in plan.errors} == {("flag", "nodes"), ("profile", "max_price")}


async def test_a_fleet_that_cannot_be_read_any_more_stops_no_plan(bench: Bench) -> None:
    await bench.execute('UPDATE fleets SET configuration = CAST(\'{"type": "flet"}\' AS jsonb)')
    plan = await bench.call(Planning(bench.world).plan, PlanRequest(project="main", configuration=HELLO))
    assert (plan.errors, plan.total_offers) == ((), 1)


async def test_a_run_is_resolved_with_its_layers(bench: Bench) -> None:
    request = {"configuration": HELLO, "flags": {"priority": 7}, "profile": {"max_duration": "1h"}}
    wanted = ResolveRun(
        workflow_id="run/main/hello", run_id=uuid4(), request=request, submitted_at=datetime.now(UTC)
    )
    resolved = await bench.call(Runs(bench.world).resolve_run, wanted)
    assert resolved.policy is not None
    assert resolved.policy.priority == 7


async def test_offers_are_listed_for_requirements_alone(bench: Bench) -> None:
    query = OfferQuery(project="main", requirements={"resources": {"cpu": "1.."}})
    rows = await bench.call(Planning(bench.world).list_offers, query)
    assert rows.total == 1
    assert rows.offers[0].offer.backend == "local"
