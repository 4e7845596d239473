"""The scenarios for clients of the classic protocol, and the protocol's description for runs."""

from functools import partial

from fencepost.adapters.classic.client.driver import BUNDLED_CLIENT, ReferenceSubject
from fencepost.conformance.classic.clients import (
    crossings,
    draining,
    driven,
    groups,
    rebalances,
    refusals,
)
from fencepost.conformance.classic.clients.schedules.protocol import ClassicClientSchedules
from fencepost.conformance.clients.protocol import ClientProtocol
from fencepost.conformance.specification import CLIENT_SPECIFICATION
from fencepost.conformance.subject import Scenario
from fencepost.model.classic.catalogue.client import CLIENT_CAPABILITIES
from fencepost.traces.classic.client.client import ClassicClient

SCENARIOS: tuple[Scenario, ...] = tuple(
    scenario
    for module in (
        rebalances,
        driven,
        draining,
        groups,
        refusals,
        crossings,
    )
    for scenario in module.FAMILY.scenarios
)
"""Every scenario; the first one shows what the client is."""
ALWAYS_OUT_OF_REACH = frozenset({"restart", "racks"})
"""The capabilities that no scenario makes use of."""
OUT_OF_REACH = ALWAYS_OUT_OF_REACH | {"driver", "poll-interval", "auto-commit", "manual-assignment", "pattern"}
"""The capabilities that no program has of which nothing is known but its command."""
CLASSIC_CLIENTS = ClientProtocol(
    CLIENT_SPECIFICATION,
    SCENARIOS,
    ClassicClient,
    CLIENT_CAPABILITIES,
    OUT_OF_REACH,
    ClassicClientSchedules(),
    partial(ReferenceSubject, BUNDLED_CLIENT),
)
"""Clients of the classic protocol of which only requests are seen."""
DRIVEN_CLIENTS = ClientProtocol(
    CLIENT_SPECIFICATION,
    SCENARIOS,
    ClassicClient,
    CLIENT_CAPABILITIES,
    ALWAYS_OUT_OF_REACH,
    ClassicClientSchedules(is_driven=True),
    partial(ReferenceSubject, BUNDLED_CLIENT, is_driven=True),
)
"""Clients of the classic protocol with a driver."""
