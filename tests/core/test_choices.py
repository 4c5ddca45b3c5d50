"""What is told of those that do not do: only real reasons, the nearest miss first."""

from __future__ import annotations

from uuid import uuid4

from perdure.core.allocation import FleetRoom, InstanceState, Pool, Wish
from perdure.core.choices import failures, placeable
from perdure.model.resources import GpuNeed, Offer, Requirements, Resources, Span
from perdure.model.statuses import InstanceStatus

LAPTOP = Offer(
    backend="local",
    region="local",
    instance_type="local",
    resources=Resources(cpus=2, memory_mib=2048, disk_mib=72 * 1024),
    executors=("process",),
)


def _pool(nodes_max: int = 4, *, busy: tuple[int, ...] = (0, 0)) -> Pool:
    """One fleet with an instance for each of ``busy``: how many of its one block are taken."""
    fleet = FleetRoom(
        id=uuid4(),
        name="f",
        active=True,
        nodes_max=nodes_max,
        cluster=True,
        blocks=1,
        requirements=Requirements(spot=None),
        idle_duration=None,
        living=len(busy),
        nums=set(range(len(busy))),
    )
    instances = [
        InstanceState(uuid4(), fleet.id, num, f"f-{num}", InstanceStatus.IDLE, (LAPTOP,), 1, taken, "127.0.0.1")
        for num, taken in enumerate(busy)
    ]
    return Pool([fleet], instances, lambda _: [LAPTOP])


def _told(pool: Pool, nodes: int = 1, wants: Requirements | None = None) -> list[str]:
    return [it.words for it in failures(pool, Wish(uuid4(), nodes, wants or Requirements(), f"{nodes} {wants}"))]


def test_what_is_free_and_fits_is_not_among_the_failures():
    assert _told(_pool()) == []
    assert _told(_pool(), nodes=4) == []


def test_a_gang_too_large_is_told_how_many_of_its_nodes_have_room():
    assert _told(_pool(), nodes=9) == [
        "fleet f has room for 4 of 9 nodes: has 2 of at most 4 instances (nodes.max)"
    ]
    assert placeable(_pool(), Wish(uuid4(), 9, Requirements(), "9")) == 4


def test_a_busy_instance_and_a_full_fleet_are_told():
    assert _told(_pool(1, busy=(1,))) == ["fleet f has 1 of at most 1 instances (nodes.max)", "f-0 is busy"]


def test_the_nearest_miss_is_told_first():
    many = Requirements(cpu=Span(min=4), firm=("cpu",))
    pool = _pool(1, busy=(1,))
    pool.instances[0].offers = (LAPTOP.but(resources=LAPTOP.resources.but(cpus=8)),)
    assert _told(pool, wants=many) == ["f-0 is busy", "local has 2 CPUs, wanted 4.."]


def test_what_never_fits_is_told_of_each():
    gpu = Requirements(gpu=GpuNeed(count=Span(min=1)), firm=("gpu",))
    assert _told(_pool(busy=(1,)), wants=gpu) == [
        "f-0 has no GPUs, wanted 1..",
        "local has no GPUs, wanted 1..",
    ]


def test_a_claim_that_only_reuses_is_told_that_nothing_is_made_for_it():
    told = _told(_pool(busy=()), wants=Requirements(reuse_only=True))
    assert told == ["fleet f may not make a new instance (creation_policy: reuse)"]
