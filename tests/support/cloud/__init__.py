"""A cloud for tests: a provider that does as it is told, over HTTP so that several workers reach it, the backend in
front of it, and the agents on its machines."""

from tests.support.cloud.agents import CloudAgents
from tests.support.cloud.backend import CloudBackend
from tests.support.cloud.faults import Fault, breaks, full, hangs, held, invalid, quota, throttled
from tests.support.cloud.provider import Machine, Provider, State, kind
from tests.support.cloud.server import served

__all__ = [
    "CloudAgents",
    "CloudBackend",
    "Fault",
    "Machine",
    "Provider",
    "State",
    "breaks",
    "full",
    "hangs",
    "held",
    "invalid",
    "kind",
    "quota",
    "served",
    "throttled",
]
