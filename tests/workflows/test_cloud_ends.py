"""The end of instances on a cloud: terminated is what the provider says is gone, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID, uuid4

import pytest

from perdure.model.ids import instance_workflow_id
from perdure.model.statuses import InstanceReason
from tests.support.cloud import Machine, State, breaks
from tests.support.waiting import eventually
from tests.workflows.conftest import CloudLab


async def used(cloud: CloudLab, name: str = "user") -> UUID:
    """A machine that a run has left idle; the id of its instance."""
    assert await cloud.end(await cloud.submit(name)) == "done"
    (idle,) = await cloud.until_instances("idle")
    return idle.instance_id


async def delete_fleet(cloud: CloudLab) -> None:
    await cloud.client.get_workflow_handle("fleet/main/cloud").signal("delete")


async def test_termination_is_asked_for_until_the_provider_says_gone_and_its_last_error_is_shown(
    cloud: CloudLab,
) -> None:
    instance = cloud.client.get_workflow_handle(instance_workflow_id(await used(cloud)))
    cloud.provider.always("terminate", breaks())
    await delete_fleet(cloud)
    await cloud.until(lambda: len(cloud.provider.asked("terminate")) >= 3)

    async def shown() -> bool:
        metadata = await instance.query("__temporal_workflow_metadata")
        return "terminate: something broke" in str(metadata)

    await eventually(shown, "the last error")
    await cloud.until_instances("terminating")
    cloud.provider.lingers = 2
    cloud.provider.heal()
    await cloud.until_instances("terminated")
    assert [machine.state for machine in cloud.provider.machines.values()] == [State.GONE]
    assert await cloud.client.get_workflow_handle("fleet/main/cloud").result() == "deleted"
    await cloud.at_rest()


async def test_ending_what_somebody_else_has_ended_is_a_success(cloud: CloudLab) -> None:
    cloud.provider.delete(await used(cloud))
    await delete_fleet(cloud)
    await cloud.until_instances("terminated")
    await cloud.at_rest()


def is_silent(machine: Machine) -> None:
    machine.boots = False


def lies(machine: Machine) -> None:
    machine.says_it_is = uuid4()


@pytest.mark.parametrize("does", [is_silent, lies], ids=["silent", "another instance"])
async def test_a_machine_that_never_answers_as_itself_is_ended_and_the_run_says_why(
    cloud: CloudLab, does: Callable[[Machine], None]
) -> None:
    cloud.time(provisioning=1.5)
    cloud.provider.boots = False
    run = await cloud.submit("silent")
    await cloud.until(lambda: bool(cloud.provider.alive()))
    (machine,) = cloud.provider.alive()
    machine.boots = True
    does(machine)
    ended = await cloud.end(run)
    assert ended.startswith("failed:")
    assert "its agent could not be reached" in ended
    (gone,) = await cloud.until_instances("terminated")
    assert gone.reason is InstanceReason.PROVISIONING_TIMEOUT
    await cloud.at_rest()


async def test_a_machine_that_is_taken_away_while_it_boots_is_not_waited_for(cloud: CloudLab) -> None:
    cloud.provider.boots = False
    run = await cloud.submit("taken-away")
    await cloud.until(lambda: bool(cloud.provider.alive()))
    (machine,) = cloud.provider.alive()
    cloud.provider.delete(machine.token)
    assert "its instance is gone" in await cloud.end(run)
    (gone,) = await cloud.until_instances("terminated")
    assert gone.reason is InstanceReason.UNREACHABLE
    await cloud.at_rest()


async def test_a_fleet_is_deleted_while_its_machine_boots_and_the_boot_is_not_waited_for(cloud: CloudLab) -> None:
    cloud.provider.boots = False
    run = await cloud.submit("leaves")
    await cloud.until(lambda: bool(cloud.provider.alive()))
    await run.signal("stop")
    assert await cloud.end(run) == "terminated"
    await delete_fleet(cloud)
    await cloud.until_instances("terminated")
    await cloud.at_rest()
