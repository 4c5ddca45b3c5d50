from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.core.allocation import FleetRoom, InstanceState, Pool, Walk, Wish
from perdure.core.placement import blocks_needed, why_not, words
from perdure.model.resources import Gpu, GpuNeed, Offer, Requirements, Resources, Span
from perdure.model.statuses import InstanceStatus

LAPTOP = Offer(
    backend="local",
    region="local",
    instance_type="local",
    resources=Resources(cpus=1, memory_mib=2048, disk_mib=72 * 1024),
    executors=("process",),
)
A100 = Gpu(name="A100", memory_mib=40 * 1024, compute_capability=(8, 0))
CLOUD = Offer(
    backend="aws",
    region="north",
    instance_type="p4",
    resources=Resources(cpus=96, memory_mib=1024 * 1024, disk_mib=1024 * 1024, gpus=(A100,) * 8),
    price=32.0,
)


def test_laptop_with_little_disk_runs_what_asks_for_nothing():
    assert why_not(Requirements(), LAPTOP) is None


@pytest.mark.parametrize(
    ("wants", "reason"),
    [
        (Requirements(cpu=Span(min=2), firm=("cpu",)), "has 1 CPU, wanted 2.."),
        (Requirements(disk_mib=Span(min=100 * 1024), firm=("disk",)), "has 72GB of disk, wanted 100GB.."),
        (Requirements(gpu=GpuNeed(count=Span(min=1, max=1)), firm=("gpu",)), "has no GPUs, wanted 1"),
        (Requirements(image="ubuntu"), "has no container engine, and the image ubuntu needs one"),
        (Requirements(backends=("aws",)), "backend is local, wanted aws"),
        (Requirements(spot=True), "is on-demand, wanted spot"),
    ],
)
def test_what_was_written_is_a_requirement_everywhere(wants: Requirements, reason: str):
    assert why_not(wants, LAPTOP) == reason


@pytest.mark.parametrize(
    ("wants", "reason"),
    [
        (Requirements(memory_mib=Span(min=1024, max=1024), firm=("memory",)), "2GB of memory, wanted exactly 1GB"),
        (Requirements(disk_mib=Span(min=1024, max=1024), firm=("disk",)), "72GB of disk, wanted exactly 1GB"),
        (Requirements(memory_mib=Span(min=4096, max=4096), firm=("memory",)), "2GB of memory, wanted 4GB"),
        (Requirements(memory_mib=Span(min=512, max=1024), firm=("memory",)), "2GB of memory, wanted 512MB..1GB"),
    ],
)
def test_who_has_more_than_one_value_is_told_how_to_ask_for_at_least_that(wants: Requirements, reason: str):
    told = f"{reason} (`1GB..` is at least that)" if "exactly" in reason else reason
    assert why_not(wants, LAPTOP) == f"has {told}"


def test_what_was_not_written_is_a_requirement_on_a_cloud():
    small = CLOUD.but(resources=CLOUD.resources.but(disk_mib=1024))
    assert why_not(Requirements(), small) == "has 1GB of disk, wanted 100GB.."


@pytest.mark.parametrize(
    ("need", "reason"),
    [
        (GpuNeed(names=("a100",), count=Span(min=8, max=8)), None),
        (GpuNeed(names=("H100",), count=Span(min=1)), "GPU is A100, wanted H100"),
        (GpuNeed(count=Span(min=1, max=1)), "has 8 GPUs, wanted exactly 1 (`1..` is at least that)"),
        (GpuNeed(vendor="amd", count=Span(min=1)), "GPU is of nvidia, wanted amd"),
        (GpuNeed(count=Span(min=1), memory_mib=Span(min=80 * 1024)), "GPU has 40GB, wanted 80GB.."),
        (
            GpuNeed(count=Span(min=1), total_memory_mib=Span(min=640 * 1024)),
            "GPUs have 320GB in all, wanted 640GB..",
        ),
        (GpuNeed(count=Span(min=1), compute_capability=(9, 0)), "compute capability is 8.0, wanted 9.0"),
    ],
)
def test_gpus_are_judged_by_what_they_are(need: GpuNeed, reason: str | None):
    assert why_not(Requirements(gpu=need, disk_mib=None), CLOUD) == reason


def test_remote_is_another_name_for_ssh():
    assert why_not(Requirements(backends=("remote",)), LAPTOP.but(backend="ssh")) is None


def test_fewest_blocks_that_do_are_taken():
    one_gpu = Requirements(gpu=GpuNeed(count=Span(min=1, max=1)), disk_mib=None)
    assert blocks_needed(one_gpu, CLOUD, 8) == 1
    assert blocks_needed(one_gpu.but(memory_mib=Span(min=256 * 1024)), CLOUD, 8) is None
    assert blocks_needed(Requirements(memory_mib=Span(min=256 * 1024), disk_mib=None), CLOUD, 8) == 2


def test_offer_is_shown_in_few_words():
    assert words(LAPTOP) == "local cpu=1 mem=2GB disk=72GB"
    assert words(CLOUD) == "aws north p4 cpu=96 mem=1024GB disk=1024GB A100:40GB:8"


def _fleet(nodes_max: int | None, living: int = 0, *, cluster: bool = True, name: str = "f") -> FleetRoom:
    return FleetRoom(
        id=uuid4(),
        name=name,
        active=True,
        nodes_max=nodes_max,
        cluster=cluster,
        blocks=1,
        requirements=Requirements(spot=None),
        idle_duration=None,
        living=living,
        nums=set(range(living)),
    )


def _idle(fleet: FleetRoom, num: int, offer: Offer = LAPTOP) -> InstanceState:
    return InstanceState(
        uuid4(), fleet.id, num, f"{fleet.name}-{num}", InstanceStatus.IDLE, (offer,), 1, 0, f"127.0.0.{num + 1}"
    )


def _wish(nodes: int = 1, *, overdue: bool = False, shape: str = "", **wants: object) -> Wish:
    requirements = Requirements.model_validate(wants)
    return Wish(uuid4(), nodes, requirements, shape or f"{nodes} {requirements}", overdue=overdue)


def test_cheapest_idle_instance_is_reused_first():
    fleet = _fleet(None, 2)
    dear = CLOUD.but(price=9.0)
    pool = Pool([fleet], [_idle(fleet, 0, dear), _idle(fleet, 1, CLOUD.but(price=3.0))], lambda _: [])
    seats = pool.grant(_wish())
    assert seats is not None and seats[0].name == "f-1"


def test_instances_of_a_new_cluster_are_all_made_in_one_place():
    other = CLOUD.but(region="south", price=31.0)
    pool = Pool([_fleet(None)], [], lambda _: [CLOUD, other, other.but(instance_type="p5", price=40.0)])
    seats = pool.grant(_wish(2))
    assert seats is not None
    assert {offer.region for seat in seats for offer in seat.offers} == {"south"}
    again = pool.grant(_wish(1))
    assert again is not None and {offer.region for offer in again[0].offers} == {"south"}


def test_reuse_only_never_makes_an_instance():
    assert Pool([_fleet(None)], [], lambda _: [LAPTOP]).grant(_wish(reuse_only=True)) is None


def test_named_fleet_is_the_only_one_considered():
    one, two = _fleet(None, name="one"), _fleet(None, name="two")
    seats = Pool([one, two], [], lambda _: [LAPTOP]).grant(_wish(fleets=("two",)))
    assert seats is not None and seats[0].fleet is two


CLAIMS = st.lists(
    st.tuples(st.integers(1, 4), st.booleans(), st.booleans()),
    max_size=12,
)


@given(most=st.integers(0, 5), idle=st.integers(0, 5), claims=CLAIMS)
def test_walk_never_gives_twice_nor_more_than_there_is(most: int, idle: int, claims: list[tuple[int, bool, bool]]):
    living = min(idle, most)
    fleet = _fleet(most, living)
    instances = [_idle(fleet, num) for num in range(living)]
    fleet.kinds = (((LAPTOP,), living),)
    pool = Pool([fleet], list(instances), lambda _: [LAPTOP])
    wishes = [
        Wish(UUID(int=at), nodes, Requirements(reuse_only=reuse), f"{nodes}{reuse}", overdue=overdue)
        for at, (nodes, overdue, reuse) in enumerate(claims)
    ]
    granted = Walk(pool).along(wishes)
    seats = [seat for _, given in granted for seat in given]
    taken = [seat.instance.id for seat in seats if seat.instance]
    nums = [seat.num for seat in seats if not seat.instance]
    assert len(taken) == len(set(taken)) and len(nums) == len(set(nums))
    assert len(seats) <= most and fleet.living <= max(most, living)
    assert all(len(given) == wish.nodes for wish, given in granted)
    assert all(wish.nodes <= most for wish, _ in granted)


@given(most=st.integers(1, 5), claims=CLAIMS)
def test_walk_leaves_nobody_waiting_who_fits_behind_those_who_may_reserve(
    most: int, claims: list[tuple[int, bool, bool]]
):
    fleet = _fleet(most)
    pool = Pool([fleet], [], lambda _: [LAPTOP])
    wishes = [
        Wish(UUID(int=at), nodes, Requirements(), f"{nodes}", overdue=overdue)
        for at, (nodes, overdue, _) in enumerate(claims)
    ]
    got = {wish.claim_id for wish, _ in Walk(pool).along(wishes)}
    reserving = False
    room = most
    for wish in wishes:
        fits = not reserving and wish.nodes <= room
        assert (wish.claim_id in got) == fits
        room -= wish.nodes if fits else 0
        reserving = reserving or (not fits and wish.overdue and wish.nodes <= most)
