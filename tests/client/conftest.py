"""A real Temporal server, and none of our workers unless a test starts one."""

from tests.support.temporal import temporal, temporal_server

__all__ = ["temporal", "temporal_server"]
