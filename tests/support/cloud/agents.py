"""The agents on the cloud's machines: found by address, as real ones are, and telling who they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast
from uuid import UUID

from perdure.agents.client import Agents, Endpoint
from perdure.agents.protocol import Health, TaskList
from perdure.model.errors import AgentRefused, AgentUnreachable
from tests.support.cloud.provider import Machine, Provider


@dataclass
class CloudAgents:
    """In place of ``perdure.agents.client.Agents``."""

    provider: Provider
    cut: bool = False
    """Nobody is reached."""

    async def shim(self, endpoint: Endpoint) -> CloudShim:
        return CloudShim(self, endpoint)

    async def close(self) -> None:
        return None

    def as_agents(self) -> Agents:
        """For a ``World``."""
        return cast("Agents", self)


@dataclass
class CloudShim:
    agents: CloudAgents
    endpoint: Endpoint

    async def healthcheck(self) -> Health:
        machine = self._answers()
        return Health(service="perdure-shim", version="0", instance_id=_identity(machine))

    async def tasks(self) -> TaskList:
        self._answers()
        return TaskList(tasks=[])

    def _answers(self) -> Machine:
        """
        Raises:
            AgentUnreachable: nobody is at the address, or nobody who has booted.
            AgentRefused: somebody else is.
        """
        machine = None if self.agents.cut else self.agents.provider.at(self.endpoint.socket)
        if machine is None or not machine.boots:
            raise AgentUnreachable("The agent does not answer: connection refused.")
        if machine.secret != self.endpoint.token:
            raise AgentRefused("The token is not mine.", status=401)
        if _identity(machine) != self.endpoint.instance_id:
            raise AgentRefused("I am another instance.", status=421)
        return machine


def _identity(machine: Machine) -> UUID:
    return machine.says_it_is or machine.token
