"""The scenarios for clients of the classic protocol, and the protocol's description for runs."""

from fencepost.conformance.clients.classic import assignments, errors, leaving, moves, rebalances
from fencepost.conformance.clients.protocol import ClientProtocol
from fencepost.conformance.clients.scenario import ClientScenario
from fencepost.conformance.specification import CLIENT_SPECIFICATION
from fencepost.model.catalogue.classic.client.constructors import CLIENT_CAPABILITIES
from fencepost.traces.client_judge.classic.client import ClassicClient

SCENARIOS: tuple[ClientScenario, ...] = tuple(
    scenario for module in (rebalances, errors, moves, assignments, leaving) for scenario in module.FAMILY.scenarios
)
"""Every scenario; the first one shows what the client is."""
OUT_OF_REACH = frozenset({"driver", "restart", "poll-interval", "auto-commit", "manual-assignment", "pattern", "racks"})
"""The capabilities that no program has of which nothing is known but its command."""
CLASSIC_CLIENTS = ClientProtocol(CLIENT_SPECIFICATION, SCENARIOS, ClassicClient, CLIENT_CAPABILITIES, OUT_OF_REACH)
"""Clients of the classic protocol."""
