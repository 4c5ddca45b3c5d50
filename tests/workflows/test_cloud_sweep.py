"""The sweep against a cloud: what nobody owns is ended, carefully, and what is healthy is left alone."""

from __future__ import annotations

from uuid import UUID, uuid4

from perdure.model.ids import instance_workflow_id
from perdure.model.statuses import InstanceReason
from tests.support.cloud import Machine, breaks
from tests.support.waiting import eventually
from tests.workflows.conftest import CloudLab
from tests.workflows.test_cloud_ends import used


def plant(cloud: CloudLab, *, installation: UUID | None = None, epoch: int | None = None) -> Machine:
    """A machine that no row knows."""
    world = cloud.world
    return cloud.provider.create(
        token=uuid4(),
        kind="small",
        name="planted",
        installation=installation or world.installation,
        epoch=world.epoch if epoch is None else epoch,
        secret="",
    )


def orphans(found: list[str]) -> list[str]:
    return [words for words in found if words.startswith("orphan-instance")]


async def test_only_ours_that_no_row_knows_is_ended_at_second_sight_and_told(cloud: CloudLab) -> None:
    healthy = await used(cloud)
    orphan, strangers = plant(cloud), [plant(cloud, installation=uuid4()), plant(cloud, epoch=99)]
    assert orphans(await cloud.sweep()) == []
    (told,) = orphans(await cloud.sweep())
    assert told == "orphan-instance: cloud had an instance that no row knows: terminated"
    left = {machine.token for machine in cloud.provider.alive()}
    assert left == {healthy, *(machine.token for machine in strangers)}
    assert orphans(await cloud.sweep()) == []
    assert len(await cloud.rows(f"SELECT 1 FROM events WHERE subject_id = '{orphan.token}'")) == 1


async def test_an_orphan_is_left_alone_for_its_grace_time(cloud: CloudLab) -> None:
    cloud.time(sweep_grace=0.3)
    old, young = plant(cloud), plant(cloud)

    async def swept() -> bool:
        young.born = old.born + 10**6
        await cloud.sweep()
        return old not in cloud.provider.alive()

    await eventually(swept, "the old one to be ended")
    assert cloud.provider.alive() == [young]


async def test_what_the_provider_does_not_end_is_told_and_tried_again(cloud: CloudLab) -> None:
    orphan = plant(cloud)
    cloud.provider.once("list", breaks())
    assert [orphans(await cloud.sweep()) for _ in range(2)] == [[], []], "a list that fails says nothing"
    cloud.provider.once("terminate", breaks())
    cloud.provider.lingers = 1
    for _ in range(2):
        assert orphans(await cloud.sweep()) != []
        assert cloud.provider.alive() == [orphan]
    await cloud.sweep()
    assert cloud.provider.alive() == []


async def test_an_old_postgres_was_restored_and_nothing_is_ended_but_what_is_gone_is_known(cloud: CloudLab) -> None:
    forgotten_end = await used(cloud)
    cloud.provider.delete(forgotten_end)
    bought_since = [plant(cloud) for _ in range(3)]
    await cloud.sweep()
    bought_since += [plant(cloud) for _ in range(3)]
    passes = [orphans(await cloud.sweep()) for _ in range(3)]
    for found in passes:
        assert all("6 instances of ours that no row knows: none was terminated" in words for words in found)
    assert len(passes[-1]) == 6
    assert cloud.provider.alive() == bought_since
    (gone,) = await cloud.until_instances("terminated")
    assert gone.reason is InstanceReason.UNREACHABLE


async def test_an_instance_that_is_not_listed_for_a_while_is_not_lost(cloud: CloudLab) -> None:
    instance = await used(cloud)
    machine = cloud.provider.machines[instance]
    machine.unlisted = 10**6
    assert [await cloud.sweep() for _ in range(3)] == [[], [], []]
    machine.unlisted = 0
    assert await used(cloud, "again") == instance
    await cloud.at_rest()


async def test_another_machine_at_the_address_of_one_that_is_gone_is_not_taken_for_it(cloud: CloudLab) -> None:
    instance = await used(cloud)
    address = cloud.provider.machines[instance].address
    cloud.provider.delete(instance)
    assert plant(cloud, installation=uuid4()).address == address
    assert any(words.startswith("lost-instance") for words in await cloud.sweep())
    await cloud.until_instances("terminated")


async def test_an_instance_whose_workflow_is_terminated_keeps_its_machine_under_another(
    cloud: CloudLab,
) -> None:
    instance = await used(cloud)
    await cloud.client.get_workflow_handle(instance_workflow_id(instance)).terminate()
    assert any(words.startswith("closed-instance") for words in await cloud.sweep())
    assert await used(cloud, "again") == instance
    await cloud.client.get_workflow_handle("fleet/main/cloud").signal("delete")
    await cloud.until_instances("terminated")
    await cloud.at_rest()
