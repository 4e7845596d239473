"""Whether the coordinator keeps the group protocol."""

import pytest
from coordinator import Coordinator

from fencepost.testing import Settings, conformance, in_memory

VERSIONS = {"JoinGroup": (1, 3), "SyncGroup": (0, 2), "Heartbeat": (0, 2), "LeaveGroup": (0, 2)}


@pytest.fixture(scope="session")
def fencepost_target():
    return in_memory(Coordinator, settings=Settings(initial_rebalance_delay=0), versions=VERSIONS)


@conformance
def test_group_protocol(fencepost_case):
    fencepost_case.check()
